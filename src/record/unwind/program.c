#include "record/unwind/program.h"

#include "record/unwind/row.h"

/* Register numbers of the x86-64 ABI. */
enum { RBP = 6, RSP = 7 };

enum { DW_OP_DEREF = 0x06, DW_OP_BREG0 = 0x70 };

enum {
	DW_CFA_ADVANCE_LOC = 0x40,
	DW_CFA_OFFSET = 0x80,
	DW_CFA_RESTORE = 0xc0,
	DW_CFA_NOP = 0x00,
	DW_CFA_ADVANCE_LOC1 = 0x02,
	DW_CFA_ADVANCE_LOC2 = 0x03,
	DW_CFA_ADVANCE_LOC4 = 0x04,
	DW_CFA_OFFSET_EXTENDED = 0x05,
	DW_CFA_RESTORE_EXTENDED = 0x06,
	DW_CFA_UNDEFINED = 0x07,
	DW_CFA_SAME_VALUE = 0x08,
	DW_CFA_REGISTER = 0x09,
	DW_CFA_REMEMBER_STATE = 0x0a,
	DW_CFA_RESTORE_STATE = 0x0b,
	DW_CFA_DEF_CFA = 0x0c,
	DW_CFA_DEF_CFA_REGISTER = 0x0d,
	DW_CFA_DEF_CFA_OFFSET = 0x0e,
	DW_CFA_DEF_CFA_EXPRESSION = 0x0f,
	DW_CFA_EXPRESSION = 0x10,
	DW_CFA_OFFSET_EXTENDED_SF = 0x11,
	DW_CFA_DEF_CFA_SF = 0x12,
	DW_CFA_DEF_CFA_OFFSET_SF = 0x13,
	DW_CFA_VAL_OFFSET = 0x14,
	DW_CFA_VAL_OFFSET_SF = 0x15,
	DW_CFA_VAL_EXPRESSION = 0x16,
	DW_CFA_GNU_ARGS_SIZE = 0x2e,
};

#define MAX_REMEMBERED 8

enum rule_kind { RULE_SAME, RULE_UNDEFINED, RULE_OFFSET, RULE_EXPRESSION, RULE_OTHER };

struct rule {
	enum rule_kind kind;
	int64_t offset; /* RULE_OFFSET: of the word that has the value, from the CFA */
	struct bytes expression;
};

/* The registers that matter. */
struct state {
	bool cfa_by_expression;
	uint64_t cfa_register;
	int64_t cfa_offset;
	struct bytes cfa_expression;
	struct rule rbp, rsp, ra;
};

struct program {
	uint64_t code_align;
	int64_t data_align;
	uint64_t location;
	uint64_t pc; /* instructions count up to here */
	struct state state, initial;
	struct state remembered[MAX_REMEMBERED];
	unsigned int n_remembered;
};

/* register + offset, at most one load: the only expressions known here. */
static bool is_expression(
	const struct bytes *expression, unsigned int reg, bool deref, int64_t *offset)
{
	struct bytes rest = *expression;

	if (!rest.at || bytes_one(&rest) != DW_OP_BREG0 + reg)
		return false;
	*offset = bytes_sleb(&rest);
	if (deref && bytes_one(&rest) != DW_OP_DEREF)
		return false;
	return !rest.bad && rest.at == rest.end;
}

static bool is_rule_expression(
	const struct rule *rule, unsigned int reg, bool deref, int64_t expected)
{
	int64_t offset;

	return rule->kind == RULE_EXPRESSION &&
	       is_expression(&rule->expression, reg, deref, &offset) && offset == expected;
}

static struct rule *rule_of(struct state *state, uint64_t reg)
{
	switch (reg) {
	case RBP:
		return &state->rbp;
	case RSP:
		return &state->rsp;
	case PROGRAM_RETURN_ADDRESS:
		return &state->ra;
	default:
		return NULL;
	}
}

static uint64_t take_register(struct bytes *bytes)
{
	uint64_t reg = bytes_uleb(bytes);

	/* libunwind gives up on other registers, so do we. */
	if (reg > PROGRAM_RETURN_ADDRESS)
		bytes->bad = true;
	return reg;
}

static void set_rule(struct program *program, uint64_t reg, struct rule rule)
{
	struct rule *kept = rule_of(&program->state, reg);

	if (kept)
		*kept = rule;
}

static void set_offset(struct program *program, uint64_t reg, int64_t factored)
{
	int64_t offset;
	struct rule rule = {.kind = RULE_OFFSET};

	if (__builtin_mul_overflow(factored, program->data_align, &offset))
		rule.kind = RULE_OTHER;
	else
		rule.offset = offset;
	set_rule(program, reg, rule);
}

static void restore_rule(struct program *program, uint64_t reg)
{
	struct rule *initial = rule_of(&program->initial, reg);

	if (initial)
		set_rule(program, reg, *initial);
}

static void remember(struct program *program, struct bytes *code)
{
	if (program->n_remembered == MAX_REMEMBERED)
		code->bad = true;
	else
		program->remembered[program->n_remembered++] = program->state;
}

static void recall(struct program *program, struct bytes *code)
{
	if (!program->n_remembered)
		code->bad = true;
	else
		program->state = program->remembered[--program->n_remembered];
}

static void define_cfa(struct program *program, uint64_t reg, int64_t offset)
{
	program->state.cfa_by_expression = false;
	program->state.cfa_register = reg;
	program->state.cfa_offset = offset;
}

static int64_t take_factored(const struct program *program, struct bytes *code)
{
	return (int64_t)((uint64_t)bytes_sleb(code) * (uint64_t)program->data_align);
}

/* The instructions about how the CFA is found. */
static void run_cfa(struct program *program, uint8_t opcode, struct bytes *code)
{
	struct state *state = &program->state;
	uint64_t reg;

	switch (opcode) {
	case DW_CFA_DEF_CFA:
		reg = take_register(code);
		define_cfa(program, reg, (int64_t)bytes_uleb(code));
		break;
	case DW_CFA_DEF_CFA_SF:
		reg = take_register(code);
		define_cfa(program, reg, take_factored(program, code));
		break;
	case DW_CFA_DEF_CFA_REGISTER:
		define_cfa(program, take_register(code), state->cfa_offset);
		break;
	case DW_CFA_DEF_CFA_OFFSET:
		state->cfa_offset = (int64_t)bytes_uleb(code);
		break;
	case DW_CFA_DEF_CFA_OFFSET_SF:
		state->cfa_offset = take_factored(program, code);
		break;
	case DW_CFA_DEF_CFA_EXPRESSION:
		state->cfa_by_expression = true;
		state->cfa_expression = bytes_block(code);
		break;
	default:
		code->bad = true;
	}
}

/* The instructions that have a register and perhaps one number. */
static void run_rule(struct program *program, uint8_t opcode, struct bytes *code)
{
	uint64_t reg = take_register(code);

	switch (opcode) {
	case DW_CFA_OFFSET_EXTENDED:
		set_offset(program, reg, (int64_t)bytes_uleb(code));
		break;
	case DW_CFA_OFFSET_EXTENDED_SF:
		set_offset(program, reg, bytes_sleb(code));
		break;
	case DW_CFA_RESTORE_EXTENDED:
		restore_rule(program, reg);
		break;
	case DW_CFA_UNDEFINED:
		set_rule(program, reg, (struct rule){.kind = RULE_UNDEFINED});
		break;
	case DW_CFA_SAME_VALUE:
		set_rule(program, reg, (struct rule){.kind = RULE_SAME});
		break;
	case DW_CFA_EXPRESSION:
		set_rule(program, reg,
			(struct rule){.kind = RULE_EXPRESSION, .expression = bytes_block(code)});
		break;
	case DW_CFA_REGISTER:
	case DW_CFA_VAL_OFFSET:
	case DW_CFA_VAL_OFFSET_SF:
		bytes_uleb(code);
		set_rule(program, reg, (struct rule){.kind = RULE_OTHER});
		break;
	case DW_CFA_VAL_EXPRESSION:
		bytes_block(code);
		set_rule(program, reg, (struct rule){.kind = RULE_OTHER});
		break;
	default:
		code->bad = true;
	}
}

static void advance(struct program *program, uint64_t factored)
{
	program->location += factored * program->code_align;
}

static void run_one(struct program *program, struct bytes *code)
{
	uint8_t opcode = bytes_one(code), low = opcode & 0x3f;

	switch (opcode & 0xc0) {
	case DW_CFA_ADVANCE_LOC:
		advance(program, low);
		return;
	case DW_CFA_OFFSET:
		if (low > PROGRAM_RETURN_ADDRESS)
			code->bad = true;
		set_offset(program, low, (int64_t)bytes_uleb(code));
		return;
	case DW_CFA_RESTORE:
		if (low > PROGRAM_RETURN_ADDRESS)
			code->bad = true;
		restore_rule(program, low);
		return;
	default:
		break;
	}
	switch (opcode) {
	case DW_CFA_NOP:
		break;
	case DW_CFA_ADVANCE_LOC1:
		advance(program, bytes_number(code, 1));
		break;
	case DW_CFA_ADVANCE_LOC2:
		advance(program, bytes_number(code, 2));
		break;
	case DW_CFA_ADVANCE_LOC4:
		advance(program, bytes_number(code, 4));
		break;
	case DW_CFA_REMEMBER_STATE:
		remember(program, code);
		break;
	case DW_CFA_RESTORE_STATE:
		recall(program, code);
		break;
	case DW_CFA_GNU_ARGS_SIZE:
		bytes_uleb(code);
		break;
	default:
		if (opcode >= DW_CFA_DEF_CFA && opcode <= DW_CFA_DEF_CFA_OFFSET_SF &&
			opcode != DW_CFA_EXPRESSION && opcode != DW_CFA_OFFSET_EXTENDED_SF)
			run_cfa(program, opcode, code);
		else
			run_rule(program, opcode, code);
	}
}

static bool run(struct program *program, struct bytes code)
{
	while (code.at < code.end && !code.bad && program->location <= program->pc)
		run_one(program, &code);
	return !code.bad;
}

static uint32_t signal_row(const struct state *state)
{
	int64_t cfa;

	if (state->cfa_by_expression && is_expression(&state->cfa_expression, RSP, true, &cfa) &&
		cfa == ROW_SIGNAL_RSP &&
		is_rule_expression(&state->rbp, RSP, false, ROW_SIGNAL_RBP) &&
		is_rule_expression(&state->rsp, RSP, false, ROW_SIGNAL_RSP) &&
		is_rule_expression(&state->ra, RSP, false, ROW_SIGNAL_RIP))
		return row_make(ROW_SIGNAL, 0, 0);
	return ROW_BAD;
}

static uint32_t realigned_row(const struct state *state)
{
	int64_t cfa;

	if (state->ra.kind == RULE_OFFSET && state->ra.offset == -8 &&
		state->rsp.kind == RULE_SAME &&
		is_expression(&state->cfa_expression, RBP, true, &cfa) &&
		is_rule_expression(&state->rbp, RBP, false, 0))
		return row_make(ROW_REALIGNED, cfa, 0);
	return ROW_BAD;
}

static uint32_t row_of(const struct state *state, bool is_signal)
{
	enum row_kind kind = state->cfa_register == RSP ? ROW_RSP : ROW_RBP;

	if (is_signal)
		return signal_row(state);
	if (state->cfa_by_expression)
		return realigned_row(state);
	if ((state->cfa_register != RSP && state->cfa_register != RBP) ||
		state->rsp.kind != RULE_SAME)
		return ROW_BAD;
	if (state->ra.kind == RULE_UNDEFINED || state->rbp.kind == RULE_UNDEFINED)
		return row_make(ROW_LAST, 0, 0);
	if (state->ra.kind != RULE_OFFSET || state->ra.offset != -8)
		return ROW_BAD;
	if (state->rbp.kind == RULE_SAME)
		return row_make(kind, state->cfa_offset, 0);
	/* A slot of 0 would mean that there is none. */
	if (state->rbp.kind == RULE_OFFSET && state->rbp.offset)
		return row_make(kind, state->cfa_offset, state->rbp.offset);
	return ROW_BAD;
}

uint32_t program_row(
	const struct program_common *common, struct bytes instructions, uint64_t begin, uint64_t pc)
{
	struct program program = {
		.code_align = common->code_align, .data_align = common->data_align};

	/* The common instructions hold everywhere. */
	program.pc = UINT64_MAX;
	if (!run(&program, common->instructions))
		return ROW_BAD;
	program.initial = program.state;
	program.location = begin;
	program.pc = pc;
	if (!run(&program, instructions))
		return ROW_BAD;
	return row_of(&program.state, common->is_signal);
}
