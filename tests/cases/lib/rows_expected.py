"""Which records a call of the driver must leave: worked out from the meaning of the call, not from the recorder."""
import collections
import re

ARRAY_BYTES = 0x123450000  # as rows.h says
CAPTURED_GRAPH = 0x9a9b9c00  # likewise
MASK = (1 << 64) - 1
ANY = object()
SOME = object()  # any number but 0

# CUarray_format: bits a channel, and bits a texel where the format says it all.
CHANNEL_BITS = {0x01: 8, 0x10: 16, 0x20: 32}
TEXEL_BITS = {0xb0: 12, 0x91: 4, 0x9d: 8, 0xcb: 64}
HOST, DEVICE, ARRAY, UNIFIED = 1, 2, 3, 4  # CUmemorytype
LAYERED = 1
ON_DEVICE = 1  # CUmemLocationType
OUT_OF_MEMORY = 2  # CUresult


def constants(source):
    """The numbers of format.h, by name."""
    text = open(source + '/include/vramtrace/format.h').read()
    return {name: int(value) for name, value in re.findall(r'\bVT_(\w+)\s*=?\s+(\d+)u?\b', text)}


def signed(value):
    value &= 0xffffffff
    return value - (1 << 32) if value >> 31 else value


class State:
    """What the calls so far have made known."""

    def __init__(self):
        self.pools, self.mapped, self.contexts, self.primary = {}, {}, {}, {}
        self.launched = set()
        self.objects = collections.Counter()  # created and destroyed, by enum vt_object
        self.readback = None  # stream of the last asynchronous copy to the host, if the thread has not waited since


class Call:
    def __init__(self, line, arguments, options):
        export, variant, number, result, context, taken, free = line.split()
        self.export, self.variant, self.result = export, int(variant), int(result)
        self.base = re.sub(r'(_v\d+)?(_pts|_ptd)?[sz]?$', '', export) if export.endswith(('_ptsz', '_ptds')) else \
            re.sub(r'_v\d+$', '', export)
        self.ok = self.result == 0
        self.device = 0 if context == '0' else -1
        self.taken, self.free = int(taken), int(free)
        self.args = arguments[export, variant, number]
        self.sampled, self.timed, self.capturing = options['sampled'], options['timed'], False
        self.what = '%s (variant %s, pass %s, result %d)' % (export, variant, number, self.result)

    def __getitem__(self, name):
        return self.args.get(name, 0)

    def first(self, n=0):
        return list(v for k, v in self.args.items() if not re.search(r'[*.\[]', k))[n]

    def out(self, name):
        return self['*' + name] if self.ok and self[name.split('.')[0]] else 0

    def location(self, name):
        """The device of a CUmemLocation, -1: none."""
        return signed(self[name + '.id']) if self[name + '.type'] == ON_DEVICE else -1

    @property
    def is_async(self):
        return 'Async' in self.base


class Expected:
    """The records of each call. One method for each family of calls, found by the name of the call."""

    def __init__(self, names):
        self.names, self.state = names, State()

    def number(self, name):
        return self.names[name]

    def alloc(self, c, kind, address, size, stream=0, pool=0, device=None):
        on_host = kind in ('PINNED', 'REGISTERED')
        fields = {'kind': self.number('KIND_' + kind), 'bytes': size & MASK,
                  'device': -1 if on_host else c.device if device is None else device}
        if not c.ok:
            return [('failure', dict(fields, result=c.result, address=address if kind == 'REGISTERED' else 0,
                                     stream=stream, pool=pool))]
        return [('alloc', dict(fields, address=address, stream=stream, pool=pool,
                               context_id=('current',) if c.device == 0 else 0))]

    def free(self, c, kind, address, stream=0):
        if c.ok and not address:
            return []
        return [('free', {'kind': self.number('KIND_' + kind), 'address': address, 'stream': stream, 'result': c.result})]

    def untracked(self, c, cause):
        if c.result == OUT_OF_MEMORY and cause != 'GRAPH_EXEC':
            return [('failure', {'kind': 0, 'bytes': 0, 'device': c.device, 'result': c.result})]
        if not (c.ok and c.sampled and c.taken and c.device == 0 and not c.capturing):
            return []
        return [('untracked', {'cause': self.number('CAUSE_' + cause), 'device': 0, 'taken_bytes': c.taken})]

    # --- Memory ---
    def cuMemAlloc(self, c):
        return self.alloc(c, 'LINEAR', c.out('dptr'), c['bytesize'])

    def cuMemAllocPitch(self, c):
        return self.alloc(c, 'LINEAR', c.out('dptr'), (c.out('pPitch') if c.ok else c['WidthInBytes']) * c['Height'])

    def cuMemAllocManaged(self, c):
        return self.alloc(c, 'MANAGED', c.out('dptr'), c['bytesize'])

    def cuMemFree(self, c):
        return self.free(c, 'LINEAR', c['dptr'])

    def cuMemAllocHost(self, c):
        return self.alloc(c, 'PINNED', c.out('pp'), c['bytesize'])

    cuMemHostAlloc = cuMemAllocHost

    def cuMemFreeHost(self, c):
        return self.free(c, 'PINNED', c['p'])

    def cuMemHostRegister(self, c):
        return self.alloc(c, 'REGISTERED', c['p'], c['bytesize'])

    def cuMemHostUnregister(self, c):
        return self.free(c, 'REGISTERED', c['p'])

    # --- Pools ---
    def pool_alloc(self, c, device, pool):
        address, size = c.out('dptr'), c['bytesize']
        if c.capturing:
            return [('graph_alloc', {'graph': CAPTURED_GRAPH, 'device': device, 'address': address, 'bytes': size, 'result': c.result})]
        return self.alloc(c, 'POOL', address, size, c['hStream'], pool, device)

    def cuMemAllocAsync(self, c):
        return self.pool_alloc(c, c.device, 0)

    def cuMemAllocFromPoolAsync(self, c):
        return self.pool_alloc(c, self.state.pools.get(c['pool'], -1), c['pool'])

    def cuMemFreeAsync(self, c):
        if c.capturing:
            return [('graph_free', {'graph': CAPTURED_GRAPH, 'address': c['dptr'], 'result': c.result})]
        return self.free(c, 'POOL', c['dptr'], c['hStream'])

    def pool(self, c, action, pool, device, value=0):
        return [('pool', {'action': self.number('POOL_' + action), 'pool': pool, 'device': device, 'value': value,
                          'result': c.result})]

    def cuMemPoolCreate(self, c):
        device = c.location('poolProps[0].location')
        if c.ok:
            self.state.pools[c.out('pool')] = device
        return self.pool(c, 'CREATE', c.out('pool'), device if c.ok else ANY, c['poolProps[0].maxSize'])

    def cuMemPoolDestroy(self, c):
        device = self.state.pools.get(c['pool'], -1)
        if c.ok:
            self.state.pools.pop(c['pool'], None)
        return self.pool(c, 'DESTROY', c['pool'], device)

    def cuMemPoolTrimTo(self, c):
        return self.pool(c, 'TRIM', c['pool'], self.state.pools.get(c['pool'], -1), c['minBytesToKeep'])

    def cuMemPoolSetAttribute(self, c):
        if c['attr'] != 4 or not c['value']:  # CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
            return []
        return self.pool(c, 'THRESHOLD', c['pool'], self.state.pools.get(c['pool'], -1), c['value[0]'])

    def cuMemPoolImportFromShareableHandle(self, c):
        return self.pool(c, 'IMPORT', c.out('pool_out'), -1)

    def cuMemPoolImportPointer(self, c):
        return self.alloc(c, 'SHARED', c.out('ptr_out'), 0, pool=c['pool'])

    def known_pool(self, c, name, device):
        if c.ok:
            self.state.pools[c.out(name)] = device
        return []

    def cuDeviceGetDefaultMemPool(self, c):
        return self.known_pool(c, 'pool_out', signed(c['dev']))

    def cuDeviceGetMemPool(self, c):
        return self.known_pool(c, 'pool', signed(c['dev']))

    def cuMemGetDefaultMemPool(self, c):
        return self.known_pool(c, 'pool_out', c.location('location[0]'))

    def cuMemGetMemPool(self, c):
        return self.known_pool(c, 'pool', c.location('location[0]'))

    def cuDeviceSetMemPool(self, c):
        return self.pool(c, 'SET_CURRENT', c['pool'], signed(c['dev']))

    def cuMemSetMemPool(self, c):
        return self.pool(c, 'SET_CURRENT', c['pool'], c.location('location[0]'))

    # --- Virtual memory ---
    def cuMemAddressReserve(self, c):
        return [('reserve', {'address': c.out('ptr'), 'bytes': c['size'], 'result': c.result})]

    def cuMemAddressFree(self, c):
        return [('unreserve', {'address': c['ptr'], 'bytes': c['size'], 'result': c.result})]

    def handle(self, c, name, size, device, location, sharing):
        if not c.ok:
            return self.alloc(c, 'VMM' if sharing == 'OWN' else 'SHARED', 0, size, device=device)
        return [('handle_create', {'handle': c.out(name), 'bytes': size, 'device': device, 'location': location,
                                   'sharing': self.number('SHARING_' + sharing)})]

    def cuMemCreate(self, c):
        return self.handle(c, 'handle', c['size'], c.location('prop[0].location'), c['prop[0].location.type'], 'OWN')

    def cuMemImportFromShareableHandle(self, c):
        return self.handle(c, 'handle', 0, -1, 0, 'IMPORTED')

    def cuMulticastCreate(self, c):
        return self.handle(c, 'mcHandle', c['prop[0].size'], -1, 0, 'MULTICAST')

    def cuMemRelease(self, c):
        return [('handle_release', {'handle': c['handle'], 'result': c.result})]

    def cuMemRetainAllocationHandle(self, c):
        return [('handle_retain', {'handle': c.out('handle'), 'address': c['addr'], 'result': c.result})]

    def cuMemMap(self, c):
        return [('map', {'address': c['ptr'], 'bytes': c['size'], 'offset': c['offset'], 'handle': c['handle'],
                         'result': c.result})]

    def cuMemUnmap(self, c):
        return [('unmap', {'address': c['ptr'], 'bytes': c['size'], 'result': c.result})]

    def cuMemSetAccess(self, c):
        return [('access', {'address': c['ptr'], 'bytes': c['size'], 'device': c.location('desc[%d].location' % i),
                            'flags': c['desc[%d].flags' % i], 'result': 0}) for i in range(c['count'] if c.ok else 0)]

    # --- Copies and sets ---
    def on_stream(self, c):
        captured = c.capturing and not (not c.ok and 'Batch' in c.base)
        return c.is_async and self.number('COPY_ASYNC') + captured * self.number('COPY_CAPTURED')

    def default_stream(self, c):
        """The driver here does not tell which other streams wait for the legacy default one. Of refused batches nothing is known."""
        if not c.is_async or c['hStream'] > 1 or (not c.ok and 'Batch' in c.base):
            return 0
        per_thread = not c['hStream'] and c.export.endswith('_ptsz')
        return self.number('COPY_BLOCKING' if per_thread else 'COPY_LEGACY')

    def copy(self, c, direction, dst, src, size, flags='', rows=0, pitch=0):
        bits = [self.number('COPY_' + flag) for flag in flags.split()] + [self.on_stream(c), self.default_stream(c)]
        to_host = direction in ('D2H', 'UNIFIED')
        timed = c.is_async and to_host and c.ok and not (c.capturing or 'SAME_CALL' in flags)
        if timed:
            self.state.readback = c['hStream']
        timed_id = ANY if direction is ANY or (c.timed and c.is_async and c.ok and not c.capturing) else SOME if timed else 0
        return [('copy', {'pitch': pitch, 'timed_id': timed_id,'direction': direction if direction is ANY else self.number('DIR_' + direction),
                          'flags': sum(bits), 'dst': dst & MASK, 'src': src & MASK, 'bytes': size & MASK, 'rows': rows,
                          'stream': c['hStream'], 'device': c.device, 'result': c.result})]

    def linear_copy(self, c, source, target):
        """source and target: H, D, A (host, device, array) or U (any address)."""
        direction = {'HD': 'H2D', 'DH': 'D2H', 'DD': 'D2D', 'UU': 'UNIFIED'}[(source + target).replace('A', 'D')]
        addresses = [v for k, v in c.args.items() if re.match(r'(dst|src)(Device|Host|Array)?$', k)]
        flags = ('DST_ARRAY ' if target == 'A' else '') + ('SRC_ARRAY' if source == 'A' else '')
        return self.copy(c, direction, addresses[0], addresses[1], c['ByteCount'], flags)

    def cuMemcpyPeer(self, c):
        return self.copy(c, 'P2P', c['dstDevice'], c['srcDevice'], c['ByteCount'])

    cuMemcpyPeerAsync = cuMemcpyPeer

    @staticmethod
    def side(c, side, depth):
        """Where a rectangle or box begins, and its memory type."""
        f = {name: c['pCopy[0].%s%s' % (side, name)] for name in
             ('MemoryType', 'Host', 'Device', 'Array', 'XInBytes', 'Y', 'Z', 'Pitch', 'Height')}
        if f['MemoryType'] == ARRAY:
            return f['Array'], ARRAY
        rows = f['Y'] + (f['Z'] * f['Height'] if depth else 0)
        return f['Host' if f['MemoryType'] == HOST else 'Device'] + rows * f['Pitch'] + f['XInBytes'], f['MemoryType']

    def box_copy(self, c, depth, peer):
        if not c['pCopy']:
            return []
        (dst, to), (src, source) = (self.side(c, side, depth) for side in ('dst', 'src'))
        layers = c['pCopy[0].Depth'] if depth else 1
        rows = c['pCopy[0].Height'] * layers
        if not to or not source:
            direction = ANY
        elif UNIFIED in (to, source):
            direction = 'UNIFIED'
        else:
            direction = '%s2%s' % ('H' if source == HOST else 'D', 'H' if to == HOST else 'D')
        if peer and direction == 'D2D':
            direction = 'P2P'
        flags = ('DST_ARRAY ' if to == ARRAY else '') + ('SRC_ARRAY ' if source == ARRAY else '') + 'PEER' * peer
        pitches = [c['pCopy[0].%sPitch' % side] for side, kind in (('dst', to), ('src', source)) if kind != ARRAY]
        return self.copy(c, direction, dst, src, c['pCopy[0].WidthInBytes'] * rows, flags, rows, max(pitches, default=0))

    def cuMemcpyBatchAsync(self, c):
        records = [] if c.ok else self.copy(c, 'UNIFIED', 0, 0, 0)
        for i in range(c['count'] if c.ok else 0):
            records += self.copy(c, 'UNIFIED', c['dsts[%d]' % i], c['srcs[%d]' % i], c['sizes[%d]' % i],
                                 'SAME_CALL' if i else '')
        return records

    def cuMemcpy3DBatchAsync(self, c):
        records = [] if c.ok else self.copy(c, 'UNIFIED', 0, 0, 0)
        for op in ('opList[%d].' % i for i in range(c['numOps'] if c.ok else 0)):
            to, source = (c[op + side + '.type'] == 2 for side in ('dst', 'src'))
            extent = [c[op + 'extent.' + name] for name in ('width', 'height', 'depth')]
            flags = ['SAME_CALL'] * bool(records) + ['DST_ARRAY'] * to + ['SRC_ARRAY'] * source
            records += self.copy(c, 'D2D' if to and source else 'UNIFIED', c[op + 'dst.op.ptr.ptr'],
                                 c[op + 'src.op.ptr.ptr'], 0 if to or source else extent[0] * extent[1] * extent[2],
                                 ' '.join(flags), extent[1] * extent[2])
        return records

    def set(self, c, is_2d, width):
        size = c['Width'] * c['Height'] if is_2d else c['N']
        return [('set', {'flags': self.on_stream(c), 'device': c.device,
                         'dst': c['dstDevice'], 'bytes': size * width & MASK, 'stream': c['hStream'], 'result': c.result})]

    # --- Managed memory on the move ---
    def migrate(self, c, action, address, size, device):
        return [('migrate', {'action': self.number('MIGRATE_' + action), 'address': address, 'bytes': size,
                             'device': device, 'stream': c['hStream'], 'result': c.result})]

    def target(self, c):
        return signed(c.first(-2 if c.is_async else -1)) if 'location.type' not in c.args else c.location('location')

    def cuMemPrefetchAsync(self, c):
        return self.migrate(c, 'PREFETCH', c['devPtr'], c['count'], self.target(c))

    def cuMemAdvise(self, c):
        return self.migrate(c, 'ADVISE', c['devPtr'], c['count'], self.target(c))

    def ranges(self, c, action):
        """Location i is that of the ranges from number prefetchLocIdxs[i] on. Of a refused call nothing is known."""
        records = [] if c.ok else self.migrate(c, action, 0, 0, -1)
        for i in range(c['count'] if c.ok else 0):
            n = [k for k in range(c['numPrefetchLocs']) if c['prefetchLocIdxs[%d]' % k] <= i]
            device = c.location('prefetchLocs[%d]' % n[-1]) if n else -1
            records += self.migrate(c, action, c['dptrs[%d]' % i], c['sizes[%d]' % i], device)
        return records

    def cuMemPrefetchBatchAsync(self, c):
        return self.ranges(c, 'PREFETCH')

    def cuMemDiscardBatchAsync(self, c):
        return self.ranges(c, 'DISCARD')

    def cuMemDiscardAndPrefetchBatchAsync(self, c):
        return self.ranges(c, 'DISCARD_PREFETCH')

    # --- Arrays ---
    @staticmethod
    def counted(c, name, n_levels):
        width, height, depth, form, channels, flags = (
            c['%s[0].%s' % (name, field)] for field in ('Width', 'Height', 'Depth', 'Format', 'NumChannels', 'Flags'))
        texel = TEXEL_BITS.get(form, CHANNEL_BITS.get(form, 0) * channels)
        texels = 0
        for level in range(n_levels):
            layers = depth if flags & LAYERED else depth >> level
            texels += max(width >> level, 1) * max(height >> level, 1) * max(layers, 1)
        return texels * texel // 8

    def array(self, c, name, n_levels):
        told = c.ok and c.device == 0 and not c.capturing and c.variant % 2 == 0
        return self.alloc(c, 'ARRAY', c.out('pHandle'), ARRAY_BYTES if told else self.counted(c, name, n_levels))

    def cuArrayCreate(self, c):
        return self.array(c, 'pAllocateArray', 1)

    cuArray3DCreate = cuArrayCreate

    def cuMipmappedArrayCreate(self, c):
        return self.array(c, 'pMipmappedArrayDesc', c['numMipmapLevels'])

    def cuArrayDestroy(self, c):
        return self.free(c, 'ARRAY', c.first())

    cuMipmappedArrayDestroy = cuArrayDestroy

    # --- Bytes of others ---
    def cuIpcOpenMemHandle(self, c):
        return self.alloc(c, 'SHARED', c.out('pdptr'), 0)

    def cuIpcCloseMemHandle(self, c):
        return self.free(c, 'SHARED', c['dptr'])

    def cuExternalMemoryGetMappedBuffer(self, c):
        return self.alloc(c, 'SHARED', c.out('devPtr'), c['bufferDesc[0].size'])

    def cuGraphicsResourceGetMappedPointer(self, c):
        if c.ok:
            self.state.mapped[c['resource']] = c.out('pDevPtr')
        return self.alloc(c, 'SHARED', c.out('pDevPtr'), c.out('pSize'))

    def cuGraphicsUnmapResources(self, c):
        records = [] if c.ok else self.free(c, 'SHARED', 0)
        for i in range(c['count'] if c.ok else 0):
            records += self.free(c, 'SHARED', self.state.mapped.pop(c['resources[%d]' % i], 0))
        return records

    # --- Graphs ---
    def node(self, c, kind, prefix):
        if kind == 'alloc':
            return [('graph_alloc', {'graph': c['hGraph'], 'device': c.location('nodeParams[0].%spoolProps.location' % prefix),
                                     'address': c.out('nodeParams.%sdptr' % prefix),
                                     'bytes': c['nodeParams[0].%sbytesize' % prefix], 'result': c.result})]
        return [('graph_free', {'graph': c['hGraph'], 'address': c['nodeParams[0].free.dptr'] if prefix else c['dptr'],
                                'result': c.result})]

    def cuGraphAddMemAllocNode(self, c):
        return self.node(c, 'alloc', '') if c['nodeParams'] else []

    def cuGraphAddMemFreeNode(self, c):
        return self.node(c, 'free', '')

    def cuGraphAddNode(self, c):
        kind = {10: 'alloc', 11: 'free'}.get(c['nodeParams[0].type'])  # CU_GRAPH_NODE_TYPE_MEM_ALLOC, _MEM_FREE
        return self.node(c, kind, kind + '.') if kind else []

    def graph(self, c, action, graph=0, executable=0, device=None):
        return [('graph', {'action': self.number('GRAPH_' + action), 'graph': graph, 'exec': executable,
                           'device': c.device if device is None else device, 'stream': c['hStream'], 'result': c.result})]

    def cuGraphInstantiate(self, c):
        return self.graph(c, 'INSTANTIATE', c['hGraph'], c.out('phGraphExec')) + self.untracked(c, 'GRAPH_EXEC')

    cuGraphInstantiateWithFlags = cuGraphInstantiateWithParams = cuGraphInstantiate

    def cuGraphLaunch(self, c):
        return self.graph(c, 'CAPTURED' if c.capturing else 'LAUNCH', 0, c.first())

    def cuGraphExecDestroy(self, c):
        return self.graph(c, 'EXEC_DESTROY', 0, c.first()) + self.untracked(c, 'GRAPH_EXEC')

    def cuGraphDestroy(self, c):
        return self.graph(c, 'DESTROY', c['hGraph'])

    def cuDeviceGraphMemTrim(self, c):
        return self.graph(c, 'TRIM', device=signed(c['device']))

    # --- Contexts and captures ---
    def context(self, c, action, number, device):
        return [('context', {'action': self.number('CONTEXT_' + action), 'context_id': number, 'device': device,
                             'result': c.result})]

    def made(self, c, action):
        handle, device = c.out('pctx'), signed(c['dev'])
        if not c.ok:
            return self.context(c, action, 0, device)
        self.state.contexts[handle] = device
        return self.context(c, action, ('made', handle), device)

    def cuCtxCreate(self, c):
        return self.made(c, 'CREATE')

    def cuDevicePrimaryCtxRetain(self, c):
        if c.ok and 0 <= signed(c['dev']) < 64:
            self.state.primary[signed(c['dev'])] = c.out('pctx')
        return self.made(c, 'RETAIN')

    def known(self, handle):
        return ('is', handle) if handle in self.state.contexts else 0

    def cuCtxDestroy(self, c):
        records = self.context(c, 'DESTROY', self.known(c['ctx']), self.state.contexts.get(c['ctx'], -1))
        if c.ok:
            self.state.contexts.pop(c['ctx'], None)
        return records

    def primary(self, c, action):
        device = signed(c['dev'])
        return self.context(c, action, self.known(self.state.primary.get(device)), device)

    def cuDevicePrimaryCtxRelease(self, c):
        return self.primary(c, 'RELEASE')

    def cuDevicePrimaryCtxReset(self, c):
        return self.primary(c, 'RESET')

    def cuCtxSetLimit(self, c):
        return self.untracked(c, {0: 'LOCAL_MEMORY', 2: 'DEVICE_HEAP'}.get(c['limit'], 'LIMITS'))

    def cuGreenCtxCreate(self, c):
        return self.untracked(c, 'GREEN_CONTEXT')

    cuGreenCtxDestroy = cuGreenCtxCreate

    def code(self, c):
        return self.untracked(c, 'MODULES')

    cuModuleLoad = cuModuleLoadData = cuModuleLoadDataEx = cuModuleLoadFatBinary = cuModuleUnload = code
    cuModuleGetFunction = cuLibraryLoadData = cuLibraryLoadFromFile = cuLibraryUnload = cuLibraryGetModule = code
    cuKernelGetFunction = code

    def only_counted(self, c):
        return []

    cuStreamCreate = cuStreamCreateWithPriority = cuGreenCtxStreamCreate = cuStreamDestroy = only_counted
    cuEventCreate = cuEventDestroy = only_counted

    def count(self, c):
        """Objects are counted, whatever else is recorded of the call."""
        found = re.fullmatch(r'cu(?:GreenCtx)?(Stream|Event|Module|Library|Graph)(?:Exec)?(Create|Load|Instantiate|Destroy|Unload).*',
                             c.base)
        if not found or not c.ok or c.base in ('cuGraphDestroy', 'cuGraphCreate'):
            return
        sort = {'Stream': 'STREAM', 'Event': 'EVENT', 'Graph': 'GRAPH_EXEC'}.get(found[1], 'MODULE')
        what = 'destroyed' if found[2] in ('Destroy', 'Unload') else 'created'
        self.state.objects[self.number('OBJECT_' + sort), what] += 1

    def launch(self, c):
        """Only the first launch of a kernel that works is measured."""
        first = c['f'] not in self.state.launched
        if c.ok:
            self.state.launched.add(c['f'])
        return self.untracked(c, 'MODULES') if first and c['f'] else []

    cuLaunchKernel = cuLaunchKernelEx = cuLaunchCooperativeKernel = launch

    def capture(self, c, begin):
        return [('capture', {'begin': begin, 'stream': c['hStream'], 'result': c.result})]

    def cuStreamBeginCapture(self, c):
        return self.capture(c, 1)

    cuStreamBeginCaptureToGraph = cuStreamBeginCapture

    def cuStreamEndCapture(self, c):
        return self.capture(c, 0)

    # --- Waiting ---
    def wait(self, c, stream=None):
        if not c.ok or self.state.readback is None or stream not in (None, self.state.readback):
            return []
        self.state.readback = None
        return [('copy_time', {'timed_id': SOME, 'gpu_time_ns': 0, 'wait_ns': ANY})]

    def cuStreamSynchronize(self, c):
        return self.wait(c, c['hStream'])

    cuCtxSynchronize = cuEventSynchronize = wait

    def peer(self, c, on):
        return [('peer_access', {'device': c.device, 'peer': self.state.contexts.get(c['peerContext'], -1), 'on': on,
                                 'result': c.result})]

    def cuCtxEnablePeerAccess(self, c):
        return self.peer(c, 1)

    def cuCtxDisablePeerAccess(self, c):
        return self.peer(c, 0)

    def nothing(self, c):
        return []

    cuInit = cuGetProcAddress = cuMemMapArrayAsync = cuMemBatchDecompressAsync = nothing

    def of(self, c):
        named = getattr(self, c.base, None)
        if named:
            return named(c)
        match = re.match(r'cuMemcpy([HDA])to([HDA])(Async)?$', c.base)
        if match:
            return self.linear_copy(c, match.group(1), match.group(2))
        if c.base in ('cuMemcpy', 'cuMemcpyAsync'):
            return self.linear_copy(c, 'U', 'U')
        match = re.match(r'cuMemcpy([23])D(Unaligned|Peer)?(Async)?$', c.base)
        if match:
            return self.box_copy(c, match.group(1) == '3', match.group(2) == 'Peer')
        match = re.match(r'cuMemsetD(2D)?(8|16|32)(Async)?$', c.base)
        if match:
            return self.set(c, match.group(1), int(match.group(2)) // 8)
        return None
