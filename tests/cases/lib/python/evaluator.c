/*
 * An evaluator of PEP 523: every call of a Python function goes through a C function of ours, as
 * with torch.compile. Built against the headers of one interpreter, opened with ctypes.PyDLL.
 */
#if PYTHON_HEX < 0x03090000
#define Py_BUILD_CORE /* the interpreter's state is opaque outside */
#endif
#include <Python.h>
#if PY_VERSION_HEX < 0x03090000
#include <internal/pycore_pystate.h>
#endif

#if PY_VERSION_HEX >= 0x030b0000
typedef struct _PyInterpreterFrame frame_t;
#else
typedef struct _frame frame_t;
#endif

static unsigned long n_calls;

#if PY_VERSION_HEX >= 0x03090000
static PyObject *evaluate(PyThreadState *state, frame_t *frame, int throwing)
{
	PyObject *result = _PyEval_EvalFrameDefault(state, frame, throwing);

	n_calls++; /* nor a tail call */
	return result;
}

static void use(_PyFrameEvalFunction function)
{
	_PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), function);
}
#else
static PyObject *evaluate(frame_t *frame, int throwing)
{
	PyObject *result = _PyEval_EvalFrameDefault(frame, throwing);

	n_calls++;
	return result;
}

static void use(_PyFrameEvalFunction function)
{
	_PyInterpreterState_Get()->eval_frame = function;
}
#endif

void evaluator_start(void)
{
	use(evaluate);
}

void evaluator_stop(void)
{
	use(_PyEval_EvalFrameDefault);
}

unsigned long evaluator_calls(void)
{
	return n_calls;
}
