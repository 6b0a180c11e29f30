"""check_families.py LEDGER REPORT DUMP [HOW...]: check_ledger.py for random_calls --families all.

HOW: sampled   the driver was asked for free memory, last at a call after which nothing changed: what pools and graphs
               reserve, and the account, are compared
     single    one thread: no measurement was disturbed, so what was taken without being allocated is compared too. With
               several, the recorder may not ask for the true size of an array while another thread has a capture open,
               and counts its texels: the bytes of arrays are then at most those of the driver.

Compared over all devices together, since not every call tells a device: host memory, memory shared by others, copies,
migrations. The size of shared memory is compared where the call that gives its address tells it. Multicast objects are
shared memory to the report and nothing to the simulated driver: they are taken off by their count.
"""
import collections
import json
import sys

sys.dont_write_bytecode = True
import check_copies  # noqa: E402

ledger = json.load(open(sys.argv[1]))
report = json.load(open(sys.argv[2]))
how = sys.argv[4:]
n_wrong = n_compared = 0
TOTALS = {'live_bytes': 'live_bytes', 'live': 'live_count', 'peak_live_bytes': 'peak_live_bytes', 'allocations': 'allocations',
          'frees': 'frees', 'freed_at_teardown': 'implicit_frees'}
CAUSES = {'context': 'context', 'local_memory': 'local_memory', 'device_heap': 'device_heap', 'modules': 'modules',
          'graph_exec': 'graph_exec', 'green_context': 'green'}


def same(what, seen, truth):
    global n_wrong, n_compared
    n_compared += 1
    if seen != truth:
        n_wrong += 1
        print(f'{what}: the trace says {seen}, the driver {truth}')


def total(entries, key, **where):
    return sum(e[key] for e in entries if all(e[name] == value for name, value in where.items()))


def read_dump(path):
    """Counts what the report has no number for."""
    n, made, last = collections.Counter(), {}, 0
    for line in open(path):
        r = json.loads(line)
        what = r['record']
        ok = not r.get('result')
        n[what] += 1
        if what in ('alloc', 'free') and ok:
            n[what, r['kind_name']] += 1
        if what == 'handle_create':
            made[r['handle']] = r
            n['made', r['sharing_name']] += 1
            n['bytes held', r['sharing_name']] += r['bytes']
        if what == 'handle_release' and ok:
            sharing = made[r['handle']]['sharing_name']
            n['released', sharing] += 1
            n['bytes held', sharing] -= made[r['handle']]['bytes']
        if what == 'migrate':
            n[r['action_name'] if ok else 'failed migrations'] += 1
        if r.get('time_ns', last) < last:
            same('time of a record', r['time_ns'], f'{last} before it')
        last = r.get('time_ns', last)
    return n


def check_totals(what, seen, true, failed):
    for key, name in TOTALS.items():
        if 'array' in what and 'bytes' in name and 'single' not in how:
            same(f'{what} {name} at most as true', 0 < seen[key] <= true[name], true[name] > 0)
            continue
        same(f'{what} {name}', seen[key], true[name])
    same(f'{what} failed', failed, true['failed'])


def check_account(what, device, truth):
    rows = collections.Counter({row['row']: row['bytes'] for row in device['end']['account']['rows']})
    arrays = rows['array']
    for row in 'linear', 'vmm', 'pool', 'graph':
        same(f'{what} account {row}', rows[row], truth['pages'][row])
    # Threads that make contexts at once leave it unmeasured what others use; the row then says so.
    if 'single' in how or device['end']['other_processes_source'] == 'measured':
        same(f'{what} account other_processes', rows['other_processes'], truth['other_bytes'])
    same(f'{what} account free', rows['free'], truth['free_bytes'])
    same(f'{what} account total', sum(rows.values()), truth['total_bytes'])
    same(f'{what} account total_bytes', device['end']['account']['total_bytes'], truth['total_bytes'])
    for cause, name in CAUSES.items():
        if 'single' in how:
            same(f'{what} taken by {cause}', rows[cause], truth['untracked'][name])
    if 'single' in how:
        # Nobody can know which small arrays share a page: their row is a lower bound, and the rest of their pages is all that
        # is left unexplained.
        same(f'{what} unexplained', rows['unexplained'], truth['pages']['array'] - arrays)


def check_device(device):
    ordinal = device['ordinal']
    what, truth = f'device {ordinal}', ledger['devices'][ordinal]
    for kind in 'linear', 'array', 'pool', 'vmm', 'managed', 'graph':
        failed = total(report['failures'], 'count', call='alloc', device=ordinal, kind=kind)
        if kind == 'graph':
            failed = sum(e['count'] for e in report['failures'] if e['call'] == 'graph' and e['device'] == ordinal and
                         ('Add' in e['driver_api'] or 'Alloc' in e['driver_api']))
        check_totals(f'{what} {kind}', device['kinds'].get(kind, collections.Counter()), truth[kind], failed)
    same(f'{what} sets', device['sets'], truth['sets']['calls'])
    same(f'{what} bytes set', device['bytes_set'], truth['sets']['bytes'])
    if 'sampled' in how:
        same(f'{what} pools reserve', device['end']['by_kind']['pool_reserved'] or 0, truth['pool_reserved_bytes'])
        same(f'{what} graphs reserve', device['end']['by_kind']['graph'], truth['graph_reserved_bytes'])
        check_account(what, device, truth)


def true_total(kind, name):
    return sum(device[kind][name] for device in ledger['devices'])


def check_host(kind, n):
    host = report['host_memory']
    same(f'{kind} live_bytes', host[f'{kind}_bytes'], true_total(kind, 'live_bytes'))
    same(f'{kind} peak_live_bytes', host[f'peak_{kind}_bytes'], sum(d[kind]['peak_live_bytes'] for d in ledger['devices']))
    same(f'{kind} allocations', n['alloc', kind], true_total(kind, 'allocations'))
    same(f'{kind} frees', n['free', kind], true_total(kind, 'frees'))
    same(f'{kind} failed', total(report['failures'], 'count', call='alloc', kind=kind), true_total(kind, 'failed'))


def check_shared(n):
    seen = collections.Counter()
    for device in report['devices']:
        seen.update(device['kinds'].get('shared', {}))
    made, released = n['made', 'multicast'], n['released', 'multicast']
    same('shared allocations', seen['allocations'] - made, true_total('shared', 'allocations'))
    same('shared frees', seen['frees'] - released, true_total('shared', 'frees'))
    same('shared live', seen['live'] - (made - released), true_total('shared', 'live_count'))
    same('shared live_bytes', seen['live_bytes'] - n['bytes held', 'multicast'], sum(device['shared_told_bytes'] for device in ledger['devices']))
    same('shared freed_at_teardown', seen['freed_at_teardown'], true_total('shared', 'implicit_frees'))
    same('shared failed', total(report['failures'], 'count', call='alloc', kind='shared'), true_total('shared', 'failed'))


def check_traffic(n):
    for direction, truth in ledger['copies'].items():
        for key, name in ('copies', 'calls'), ('bytes', 'bytes'):
            same(f'{direction} {key}', total(report['transfers'], key, direction=direction), truth[name])
    moved = collections.Counter()
    for entry in report['migrations']:
        moved[entry['action']] += entry['bytes']
    both = 'discard_and_prefetch'
    for action in 'prefetch', 'advise', 'discard':
        further = action != 'advise'
        same(f'{action} calls', n[action] + further * n[both], ledger['migrations'][action]['calls'])
        same(f'{action} bytes', moved[action] + further * moved[both], ledger['migrations'][action]['bytes'])
    check_copies.check(same, ledger, report, None)
    same('graph launches', report['coverage']['graph_launches'], sum(d['graph_launches'] for d in ledger['devices']))


def check_failures(n):
    same('failed frees', total(report['failed_frees'], 'count'), ledger['failed_frees'])
    for call in 'copy', 'set':
        truth = ledger['failed_copies' if call == 'copy' else 'failed_sets']
        same(f'failed {call}', total(report['failures'], 'count', call=call), truth)
    same('failed migrations', n['failed migrations'], ledger['failed_migrations'])
    same('failed launches', sum(e['count'] for e in report['failures'] if 'GraphLaunch' in e['driver_api']),
         ledger['failed_launches'])


def main():
    n = read_dump(sys.argv[3])
    same('devices', sorted(d['ordinal'] for d in report['devices'] if d['ordinal'] is not None),
         list(range(len(ledger['devices']))))
    for device in report['devices']:
        if device['ordinal'] is not None:
            check_device(device)
    for kind in 'pinned', 'registered':
        check_host(kind, n)
    check_shared(n)
    check_traffic(n)
    check_failures(n)
    for what in 'unknown_frees', 'missed_frees':
        same(what, report[what], 0)
    trace = report['traces'][0]
    same('lost events', trace['lost_events'], 0)
    same('complete', trace['complete'], True)
    same('pid', trace['pid'], ledger['pid'])
    print(f"{sys.argv[1]}: {trace['events']} events, {n_compared} numbers compared, {n_wrong} differences")
    return n_wrong > 0


sys.exit(main())
