#!/usr/bin/env python3
"""Writes the C files of the test of every row: rows_generate.py FOLDER COMPILER [FLAG...]

The prototypes are the vendor's, found in the preprocessed cuda.h; the rows are those of driver.def and
driver_used.def for these headers. Into FOLDER go
  rows_driver.c   the driver that answers row by row
  rows_caller.c   the program that calls each row with each result
  rows_decoy.c    a library with the same names that is no driver
  rows_linked.c   a library that is linked with the driver
"""
import os
import re
import subprocess
import sys

INPUT = '''#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#define ROW(export, name, version, stream, family, effect) @ROW #export #name #version #stream #family #effect
#include "hooks/driver.def"
#define USE(export) @USE #export
#include "hooks/driver_used.def"
#if CUDA_VERSION >= 12040
@POOL_LIMIT
#endif
'''

# Pointers without const through which the driver only reads.
READ_ONLY = {'mapInfoList', 'dsts', 'dptrs', 'srcs', 'sizes', 'attrs', 'attrIdxs', 'attrsIdxs', 'opList', 'resources', 'location',
             'prefetchLocs', 'prefetchLocIdxs', 'shareData', 'ctxCreateParams', 'paramsArray', 'options', 'jitOptions',
             'libraryOptions', 'optionValues', 'jitOptionsValues', 'libraryOptionValues', 'value', 'nodeParams',
             'instantiateParams', 'kernelParams', 'extra'}

# Handles that one row makes and another takes.
SHARED = {'CUcontext': 1, 'CUmemoryPool': 2, 'CUgraphicsResource': 3}

N_ELEMENTS = 3
COUNTS = {'count': N_ELEMENTS, 'numDependencies': N_ELEMENTS, 'numOps': N_ELEMENTS, 'numAttrs': 1, 'numParams': 1,
          'numPrefetchLocs': 2, 'numOptions': 1, 'numJitOptions': 1, 'numLibraryOptions': 1, 'bufferSize': 16}

# Arguments that decide what a call does: one value for each variant.
PICKS = {
    'CUdevice': '0, 1, 5, 63, 64, (uint64_t)-1, 1000, 0x7fffffff',
    'CUlimit': 'CU_LIMIT_STACK_SIZE, CU_LIMIT_MALLOC_HEAP_SIZE, CU_LIMIT_PRINTF_FIFO_SIZE',
    'CUmemPool_attribute': 'CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES',
    'numMipmapLevels': '1, 2, 5, 14',
}

LOCATION = (('type', 'V % 4 + 1'), ('id', 'V % 7 + {i}'))


def box(dims, peer=False):
    fields = [('WidthInBytes', '0x340 + V'), ('Height', '0x21')] + ([('Depth', '5')] if dims == 3 else [])
    for n, side in enumerate(('src', 'dst')):
        fields += [(side + 'MemoryType', 'V % 4 + 1' if n == 0 else 'V / 4 % 4 + 1'),
                   (side + 'XInBytes', str(0x30 + n)), (side + 'Y', str(4 + n)), (side + 'Pitch', str(0x1000 + 0x200 * n)),
                   (side + 'Host', 'rows_value(now.row, %d, V)' % (10 + n)),
                   (side + 'Device', 'rows_value(now.row, %d, V)' % (12 + n)),
                   (side + 'Array', 'rows_value(now.row, %d, V)' % (14 + n))]
        if dims == 3:
            fields += [(side + 'Z', str(2 + n)), (side + 'Height', str(0x40 + n))]
        if peer:
            fields.append((side + 'Context', 'rows_handle(1, V, %d)' % n))
    return fields


def within(member, fields):
    return [('%s.%s' % (member, name), value) for name, value in fields]


def operand(side, types):
    """{i} counts elements, so batches hold all combinations of operands."""
    base = 'rows_value(now.row, %d + {i}, V)' % (3 if side == 'src' else 8)
    return [(side + '.type', types), (side + '.op.ptr.ptr', base)]


FORMATS = '((int[]){CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_HALF, CU_AD_FORMAT_FLOAT, CU_AD_FORMAT_NV12, ' \
    'CU_AD_FORMAT_BC1_UNORM, CU_AD_FORMAT_BC7_UNORM, CU_AD_FORMAT_SNORM_INT16X4})[V % 7]'
ARRAY = [('Width', '0x300 + V'), ('Height', 'V % 3 * 0x50'), ('Format', FORMATS), ('NumChannels', '1 << V % 3')]
ARRAY_3D = ARRAY + [('Depth', 'V / 3 % 2 * 6'), ('Flags', 'V / 6 % 2 * CUDA_ARRAY3D_LAYERED')]
ALLOC_NODE = within('poolProps.location', LOCATION) + [('bytesize', 'rows_value(now.row, 7, V)')]

# What descriptors hold. All of their other bytes are a pattern.
FIELDS = {
    'CUmemLocation': LOCATION,
    'CUmemAccessDesc': within('location', LOCATION) + [('flags', '{i} % 2 + 1')],
    'CUmemAllocationProp': within('location', LOCATION),
    'CUmemPoolProps': within('location', LOCATION),
    'CUmulticastObjectProp': [('size', 'rows_value(now.row, 7, V)')],
    'CUDA_EXTERNAL_MEMORY_BUFFER_DESC': [('size', 'rows_value(now.row, 7, V)')],
    'CUDA_MEM_ALLOC_NODE_PARAMS': ALLOC_NODE,
    'CUDA_ARRAY_DESCRIPTOR': ARRAY,
    'CUDA_ARRAY3D_DESCRIPTOR': ARRAY_3D,
    'CUDA_MEMCPY2D': box(2),
    'CUDA_MEMCPY3D': box(3),
    'CUDA_MEMCPY3D_PEER': box(3, peer=True),
    'CUDA_MEMCPY3D_BATCH_OP': operand('src', '(V + {i}) % 2 + 1') + operand('dst', '(V + {i}) / 2 % 2 + 1') +
    [('extent.width', '0x70 + V'), ('extent.height', '{i} + 3'), ('extent.depth', '{i} + 1')],
    'CUgraphicsResource': [('', 'rows_handle(3, V + {i}, 0)')],
    'dptrs': [('', 'rows_value(now.row, 0, V) + {i} * 0x1000')],
    'dsts': [('', 'rows_value(now.row, 0, V) + {i} * 0x1000')],
    'srcs': [('', 'rows_value(now.row, 1, V) + {i} * 0x2000')],
    'sizes': [('', 'rows_value(now.row, 2, V) + {i} * 0x3000')],
    'prefetchLocIdxs': [('', '{i} * 2')],
    'value': [('', 'rows_value(now.row, 2, V)')],
}

# Fields that the driver fills in.
FILLED = {
    'CUDA_MEM_ALLOC_NODE_PARAMS': ['dptr'],
    'CUDA_GRAPH_INSTANTIATE_PARAMS': ['hErrNode_out', 'result_out'],
    'CUgraphNodeParams': ['alloc.dptr'],
}

# What the driver answers when the recorder itself asks; every other question of its is refused.
ANSWERS = {
    'cuCtxGetCurrent': '\tif (rows_log.context == ROWS_NOT_TOLD)\n\t\treturn CUDA_ERROR_NOT_INITIALIZED;\n'
                       '\t*{0} = (CUcontext)(rows_log.context == ROWS_NO_CONTEXT ? 0 : ROWS_CONTEXT);\n',
    'cuCtxGetDevice': '\t*{0} = 0;\n',
    'cuDriverGetVersion': '\t*{0} = CUDA_VERSION;\n',
    'cuDeviceGetCount': '\t*{0} = 1;\n',
    'cuDeviceGetName': '\tstrncpy({0}, "rows", (size_t){1});\n',
    'cuDeviceTotalMem_v2': '\t*{0} = ROWS_TOTAL_BYTES;\n',
    'cuMemGetInfo_v2': '\t*{0} = rows_log.free_bytes;\n\t*{1} = ROWS_TOTAL_BYTES;\n',
    'cuMemPoolGetAttribute': '\t*(cuuint64_t *){2} = {1} == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ? '
                             'ROWS_RESERVED_BYTES : ROWS_USED_BYTES;\n',
    'cuDeviceGetGraphMemAttribute': '\t*(cuuint64_t *){2} = {1} == CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT ? '
                                    'ROWS_RESERVED_BYTES : ROWS_USED_BYTES;\n',
    'cuDeviceGetMemPool': '\t*{0} = (CUmemoryPool)ROWS_CURRENT_POOL;\n',
    'cuStreamGetCaptureInfo_v2': '\t*{1} = rows_log.capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : '
                                 'CU_STREAM_CAPTURE_STATUS_NONE;\n\tif ({3})\n\t\t*{3} = (CUgraph)ROWS_GRAPH;\n',
    'cuArrayGetMemoryRequirements': '\tif (rows_log.variant % 2)\n'
                                    '\t\treturn CUDA_ERROR_INVALID_VALUE;\n\t{0}->size = ROWS_ARRAY_BYTES;\n',
}
ANSWERS.update({
    'cuEventCreate': '\t*{0} = (CUevent)(uintptr_t)(0x1000 + rows_log.n_own);\n',
    'cuEventRecord': '',
    'cuEventRecord_ptsz': '',
    'cuEventQuery': '\tif (rows_log.variant % 2)\n\t\treturn CUDA_ERROR_NOT_READY;\n',
    'cuEventElapsedTime': '\t*{0} = 0.25f;\n',
})
ANSWERS['cuStreamGetCaptureInfo_v2_ptsz'] = ANSWERS['cuStreamGetCaptureInfo_v2']
ANSWERS['cuMipmappedArrayGetMemoryRequirements'] = ANSWERS['cuArrayGetMemoryRequirements']


class Param:
    def __init__(self, text, index, header):
        self.type, self.name = re.match(r'(.*?)(\w+)$', text.strip()).groups()
        self.type = self.type.strip()
        self.index = index
        self.pointee = self.type[:-1].strip() if self.type.endswith('*') else None
        self.is_const = self.type.startswith('const ')
        self.base = re.sub(r'_v\d+$', '', re.sub(r'^const ', '', self.pointee or self.type).strip())
        self.is_handle = self.type in header.handles
        self.is_struct = not self.pointee and self.base in ('CUipcMemHandle', 'CUmemLocation')
        self.is_out = self.pointee is not None and not self.is_const and self.pointee != 'void' and \
            self.name not in READ_ONLY

    def declared(self):
        return self.type + ('' if self.type.endswith('*') else ' ') + self.name


class Row:
    def __init__(self, text, header):
        self.export, self.name, version, self.stream, self.family, self.effect = re.findall(r'"(\w+)"', text)
        self.version = int(version)
        self.params = header.params(self.export)


class Header:
    def __init__(self, compiler):
        text = subprocess.run(compiler + ['-E', '-P', '-x', 'c', '-'], input=INPUT, check=True, stdout=subprocess.PIPE,
                              universal_newlines=True).stdout
        text = re.sub(r'\s+', ' ', text)
        self.prototypes = dict(re.findall(r'CUresult (cu[A-Z]\w*) ?\(([^;]*?)\) ?;', text))
        self.handles = set(re.findall(r'typedef struct \w+ ?\* ?(\w+) ?;', text)) | {'CUdevResourceDesc'}
        listed = re.search(r'typedef enum cudaError_enum \{(.*?)\} CUresult ?;', text).group(1)
        self.results = sorted({int(n, 0) for n in re.findall(r'= ?(\w+)', listed)})
        self.rows = [Row(row, self) for row in re.findall(r'@ROW((?: "\w+"){6})', text)]
        self.used = re.findall(r'@USE "(\w+)"', text)
        if '@POOL_LIMIT' in text:
            FIELDS['CUmemPoolProps'].append(('maxSize', 'rows_value(now.row, 7, V)'))

    def params(self, export):
        listed = self.prototypes[export].strip()
        return [] if listed == 'void' else [Param(p, i, self) for i, p in enumerate(listed.split(','))]


# Both sides compute what the driver writes through a pointer, or into a field of a descriptor.
def written(row, at, param, family_type, row_number, variant):
    if family_type in SHARED:
        return 'rows_handle(%d, %s, 0)' % (SHARED[family_type], variant)
    return 'rows_value(%s, %d, %s)' % (row_number, param, variant)


def outputs(row):
    """(parameter, lvalue's address, name, condition): what the driver writes."""
    for p in row.params:
        if p.is_out:
            yield p, p.name, '*' + p.name, None
        for field in FILLED.get(p.base, []) if p.pointee else []:
            yield p, '&%s->%s' % (p.name, field), '*%s.%s' % (p.name, field), \
                '%s && %s->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC' % (p.name, p.name) if p.base == 'CUgraphNodeParams' \
                else p.name


def driver_function(index, row, export, params):
    out = ['CUresult CUDAAPI %s(%s)\n{\n' % (export, ', '.join(p.declared() for p in params) or 'void')]
    if row:
        out.append('\tif (rows_enter(%d, "%s")) {\n' % (index, export))
        out += ['\t\tROWS_ARG(%s);\n' % p.name for p in params]
        for p, at, _, condition in outputs(row):
            when = 'rows_log.result' if p.name == 'failIdx' else '!rows_log.result'
            out.append('\t\tif (%s%s)\n\t\t\tROWS_OUT(%s, %s);\n' % (
                when, ' && ' + condition if condition else '', at,
                written(row, at, p.index, p.base, str(index), 'rows_log.variant')))
        out.append('\t\treturn rows_leave();\n\t}\n')
    else:
        out += ['\t(void)%s;\n' % p.name for p in params] + ['\trows_enter(-1, "%s");\n' % export]
    if row and row.effect == 'LOOKUP' and params[-1].name == 'symbolStatus':
        out.append('\tif (symbolStatus)\n\t\t*symbolStatus = CU_GET_PROC_ADDRESS_SUCCESS;\n')
    if row and row.effect == 'LOOKUP':
        out.append('\treturn rows_answer(symbol, pfn, cudaVersion, flags);\n}\n')
    elif export in ANSWERS:
        out.append(ANSWERS[export].format(*[p.name for p in params]) + '\treturn CUDA_SUCCESS;\n}\n')
    else:
        out.append('\treturn CUDA_ERROR_NOT_SUPPORTED;\n}\n')
    return ''.join(out)


def write_driver(out, header):
    """-DROWS_OLD leaves out what is newer than CUDA 11.8."""
    out.write('#include "cases/lib/rows_driver.h"\n\n')
    for i, row in enumerate(header.rows):
        text = driver_function(i, row, row.export, row.params)
        out.write('#ifndef ROWS_OLD\n%s#endif\n\n' % text if row.version > 11080 else text + '\n')
    for export in header.used:
        out.write(driver_function(-1, None, export, header.params(export)) + '\n')
    out.write('void *rows_look_up(const char *name, int version, cuuint64_t flags)\n{\n'
              '\tconst struct rows_export exports[] = {\n')
    for row in header.rows:
        text = '\t\t{"%s", "%s", %d, %s, (void *)%s},\n' % (
            row.export, row.name, row.version, 'false' if row.stream == 'NONE' else 'true', row.export)
        out.write('#ifndef ROWS_OLD\n%s#endif\n' % text if row.version > 11080 else text)
    out.write('\t\t{NULL, NULL, 0, false, NULL}};\n\n\treturn rows_find(exports, name, version, flags);\n}\n')


def fill(p, fields, n_elements):
    lines = []
    for i in range(n_elements):
        for field, value in fields:
            at = '%s[%d]%s' % (p.name, i, '.' + field if field else '')
            lines.append('\t\tPUT(%s, %s);\n' % (at, value.replace('{i}', str(i))))
    return lines


def argument(row, p):
    """The statements that give the parameter its value, and tell it."""
    fields = FIELDS.get(p.name, FIELDS.get(p.base, []))
    if p.is_struct:
        lines = ['\tmemset(&%s, now.pass == ROWS_ZEROS ? 0 : 0x5a, sizeof(%s));\n' % (p.name, p.name)]
        return lines + ['\tPUT(%s.%s, %s);\n' % (p.name, field, value.replace('{i}', '0')) for field, value in fields]
    lines = []
    if p.pointee is not None:
        lines.append('\t%s = rows_slot(%d);\n' % (p.name, p.index))
        if p.base == 'char' and p.is_const:
            lines.append('\trows_text((char *)(uintptr_t)%s);\n' % p.name)
        if p.base not in ('void', 'char') and not p.is_out:
            lines.append('\t_Static_assert(sizeof(*%s) * %d <= ROWS_SLOT_BYTES, "");\n' % (p.name, N_ELEMENTS))
            many = any(q.name in COUNTS for q in row.params) and not p.base.endswith('Params')
            body = fill(p, fields, N_ELEMENTS if many else 1)
            if p.base == 'CUgraphNodeParams':
                body = node_params(p)
            if body:
                lines += ['\tif (%s) {\n' % p.name] + body + ['\t}\n']
        elif p.name == 'value':
            lines.append('\tif (value) {\n\t\t*(cuuint64_t *)value = rows_unless_zero(%s);\n'
                         '\t\tTELL("value[0]", *(cuuint64_t *)value);\n\t}\n' % FIELDS['value'][0][1])
    elif p.is_handle:
        nth = len([q for q in row.params[:p.index] if q.base == p.base])
        lines.append('\t%s = (%s)%s;\n' % (p.name, p.type, 'SHARED(%d, %d)' % (SHARED[p.base], nth) if p.base in SHARED
                                           else 'HANDLE(%d)' % p.index))
    elif p.name in COUNTS and any(q.pointee for q in row.params):
        lines.append('\t%s = (%s)rows_unless_zero(%d);\n' % (p.name, p.type, COUNTS[p.name]))
    elif p.name in PICKS or p.base in PICKS:
        lines.append('\t%s = (%s)PICK(%s);\n' % (p.name, p.type, PICKS.get(p.name) or PICKS[p.base]))
    else:
        lines.append('\t%s = (%s)N(%d);\n' % (p.name, p.type, p.index))
    lines.append('\tTELL("%s", %s);\n' % (p.name, p.name))
    return lines


def node_params(p):
    kinds = {'MEM_ALLOC': within('alloc', ALLOC_NODE), 'MEM_FREE': [('free.dptr', 'rows_value(now.row, 7, V)')]}
    lines = ['\t\tPUT(nodeParams[0].type, ((int[]){CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEM_FREE, '
             'CU_GRAPH_NODE_TYPE_EMPTY})[V % 3]);\n']
    for kind, fields in kinds.items():
        lines.append('\t\tif (%s->type == CU_GRAPH_NODE_TYPE_%s) {\n' % (p.name, kind))
        lines += ['\t' + line for line in fill(p, fields, 1)] + ['\t\t}\n']
    return lines


def modifiable(p):
    """Declares the parameter as a variable that can be assigned, and filled through."""
    return '\t%s;\n' % re.sub(r'^const ', '', p.declared())


def caller_function(index, row):
    out = ['static CUresult call_%s(void *function)\n{\n' % row.export]
    for p in row.params:
        out.append('\tconst char *%s;\n' % p.name if p.base == 'char' and p.is_const else modifiable(p))
    out.append('\n')
    for p in row.params:
        out += argument(row, p)
    for p, at, name, condition in outputs(row):
        value = written(row, at, p.index, p.base, str(index), 'V')
        on_error = 'true' if p.name == 'failIdx' else 'false'
        line = '\tOUT(%s, "%s", %s, %s);\n' % (at, name, value, on_error)
        out.append('\tif (%s) {\n\t%s\t}\n' % (condition, line) if condition else line)
    out += ['\tSEND(%s);\n' % p.name for p in row.params]
    out.append('\tROWS_CALL(%s, function%s);\n}\n' % (row.export, ''.join(', ' + p.name for p in row.params)))
    return ''.join(out)


def write_caller(out, header):
    out.write('#include "cases/lib/rows_caller.h"\n\n')
    for i, row in enumerate(header.rows):
        out.write(caller_function(i, row) + '\n')
    out.write('const struct rows_row rows_table[] = {\n')
    for row in header.rows:
        begins = row.export.startswith('cuStreamBeginCapture')
        out.write('\t{"%s", "%s", %d, %d, %s, %s, call_%s},\n' % (
            row.export, row.name, row.version, 0 if row.stream == 'NONE' else 2, 'true' if begins else 'false',
            'false' if row.effect == 'CAPTURE' else 'true', row.export))
    results = header.results + [max(header.results) + 4242]
    out.write('};\nconst unsigned int rows_n = %d;\n' % len(header.rows))
    out.write('const int rows_results[] = {%s};\n' % ', '.join(map(str, results)))
    out.write('const unsigned int rows_n_results = %d;\n' % len(results))


def write_decoy(out, header):
    for i, row in enumerate(header.rows):
        out.write('int %s(void);\nint %s(void)\n{\n\treturn %d;\n}\n' % (row.export, row.export, 5000 + i))


def write_linked(out, header):
    out.write('#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>\n\nvoid *rows_linked[] = {\n')
    for row in header.rows:
        out.write('\t(void *)%s,\n' % row.export)
    out.write('};\n')


def main():
    folder, compiler = sys.argv[1], sys.argv[2:]
    header = Header(compiler)
    os.makedirs(folder, exist_ok=True)
    for name, write in (('driver', write_driver), ('caller', write_caller), ('decoy', write_decoy),
                        ('linked', write_linked)):
        with open(os.path.join(folder, 'rows_%s.c' % name), 'w') as out:
            write(out, header)


main()
