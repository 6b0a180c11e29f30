#!/usr/bin/env python3
"""What the trace must hold after rows_caller: rows_check.py MANIFEST DUMP SOURCE sampled|unsampled all|capture

MANIFEST says which calls were made, with what and with which result; DUMP is the trace as JSON. For each call in turn
the records that it must have left are worked out from the meaning of the driver's call, and compared with those there.
"""
import json
import os
import sys

from rows_expected import ANY, OUT_OF_MEMORY, SOME, Call, Expected, constants

# As rows.h says.
TOTAL_BYTES = 1 << 40
POOL_STATE = {'reserved_bytes': 0x77000000, 'used_bytes': 0x55000000}
CURRENT_POOL = 0x5c0de1000000


class Comparison:
    def __init__(self):
        self.n_passed = self.n_failed = 0
        self.ids, self.current = {}, None

    def check(self, right, what):
        if right:
            self.n_passed += 1
            return
        self.n_failed += 1
        if self.n_failed <= 100:
            print(what)

    def identity(self, want, found):
        """Context ids: one and the same for a handle from its making to its end, and never that of another."""
        if want == ('current',):
            self.current = self.current or found
            return found == self.current and found
        if want[0] == 'made' and want[1] not in self.ids:
            fresh = found not in self.ids.values() and found != self.current
            self.ids[want[1]] = found
            return fresh and found
        return found == self.ids[want[1]]

    def agrees(self, want, found):
        if isinstance(want, tuple):
            return self.identity(want, int(found, 0))
        if want is SOME:
            return found != 0
        return want is ANY or want == (int(found, 0) if isinstance(found, str) else found)

    def record(self, call, kind, fields, record):
        wrong = [] if record['record'] == kind else ['record: %s, not %s' % (record['record'], kind)]
        if record.get('api_id_name') != call.export:
            wrong.append('api: %s' % record.get('api_id_name'))
        for name, want in fields.items():
            if not wrong and not self.agrees(want, record[name]):
                wrong.append('%s: %s, not %s' % (name, record[name], hex(want) if isinstance(want, int) else want))
        self.check(not wrong, '%s: %s' % (call.what, '; '.join(wrong)))
        return not wrong


OF_CALLS = {'alloc', 'free', 'failure', 'copy', 'set', 'reserve', 'unreserve', 'handle_create', 'handle_release', 'map',
            'unmap', 'access', 'handle_retain', 'pool', 'graph_alloc', 'graph_free', 'graph', 'migrate', 'untracked',
            'context', 'capture', 'copy_time', 'peer_access'}
SAMPLES = {'memory', 'pool_memory', 'graph_memory', 'others', 'objects'}


def read_manifest(path, options):
    arguments, calls = {}, []
    for line in open(path):
        what, rest = line.rstrip('\n').split(' ', 1)
        if what == 'C':
            calls.append(Call(rest, arguments, options))
            continue
        export, variant, number, *values = rest.split()
        arguments[export, variant, number] = {k: int(v, 16) for k, v in (value.split('=') for value in values)}
    return calls


def check_sample(comparison, record, call, state):
    kind, device = record['record'], record.get('device')
    if kind == 'objects':
        right = all(record[what] == state.objects[record['sort'], what] for what in ('created', 'destroyed'))
    elif kind == 'memory':
        right = device == 0 and record['free_bytes'] == call.free and record['total_bytes'] == TOTAL_BYTES
    else:
        right = all(record[name] == value for name, value in POOL_STATE.items())
    if kind == 'pool_memory':
        right = right and int(record['pool'], 16) in [CURRENT_POOL] + list(state.pools)
    comparison.check(right and call.sampled and not call.capturing, '%s: wrong sample %s, %s' % (call.what, record, dict(state.objects)))


def main():
    manifest, dump, source, sampled, what = sys.argv[1:]
    options = {'sampled': sampled == 'sampled', 'timed': 'VRAMTRACE_COPY_TIMING' in os.environ}
    comparison, expected = Comparison(), Expected(constants(source))
    records = [json.loads(line) for line in open(dump)]
    records = [r for r in records if r['record'] in OF_CALLS | SAMPLES]
    times = [r for r in records if r.get('gpu_time_ns')]
    comparison.check(all(r['gpu_time_ns'] == 250001 for r in times), 'wrong times %s' % times[:1])
    comparison.check(bool(times) == (options['timed'] and what == 'all'), '%d copies were timed' % len(times))
    records = [r for r in records if not r.get('gpu_time_ns')]
    n_samples = {kind: sum(r['record'] == kind for r in records) for kind in SAMPLES}
    at, capturing = 0, False  # the capture is open from its begin to the end of the calls
    for call in read_manifest(manifest, options):
        call.capturing = capturing and call.base != 'cuStreamEndCapture'
        wanted = expected.of(call)
        expected.count(call)
        if wanted is None:
            comparison.check(False, '%s: rows_check.py does not know what it should record' % call.what)
            wanted = []
        for kind, fields in wanted:
            there = at < len(records) and records[at].get('api_id_name') == call.export
            if not there:
                comparison.check(False, '%s: no %s record' % (call.what, kind))
                break
            comparison.record(call, kind, fields, records[at])
            at += 1
            first = at
            while at < len(records) and records[at]['record'] in SAMPLES:
                check_sample(comparison, records[at], call, expected.state)
                at += 1
            if call.result == OUT_OF_MEMORY and call.sampled and not call.capturing and call.device == 0 and \
                    (kind, fields) == wanted[-1]:
                comparison.check(any(r['record'] == 'memory' for r in records[first:at]),
                                 '%s: refused, and free memory was not asked for' % call.what)
        # Calls of the same name follow one another, so a record too many shows at the first of another name.
        while at < len(records) and records[at]['record'] in SAMPLES:
            if records[at]['record'] == 'objects':
                check_sample(comparison, records[at], call, expected.state)
            at += 1
        if what == 'capture' and call.base == 'cuStreamBeginCapture':
            capturing = True
    comparison.check(at == len(records), 'records that no call explains, from %s on' % records[at:at + 1])
    if options['sampled'] and not capturing:
        for kind in ('memory', 'pool_memory', 'graph_memory', 'objects'):
            comparison.check(n_samples[kind] > 0, 'free memory is never sampled: no %s record' % kind)
    if not options['sampled']:
        comparison.check(not any(n_samples.values()), 'VRAMTRACE_MEMINFO=0, but there are samples')
    print('%d passed, %d failed' % (comparison.n_passed, comparison.n_failed))
    return comparison.n_failed > 0


sys.exit(main())
