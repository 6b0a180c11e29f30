"""Sums of copies in a report against those that the simulated driver and the program counted."""
import collections


def of_ledger(ledger):
    """(copies, bytes) by direction, host memory and size."""
    return {(e['direction'], e['host_kind'], e['size_class']): (e['calls'], e['bytes']) for e in ledger['copies_by']}


def of_report(entries):
    """The same; copies of no bytes are not the driver's."""
    n = collections.defaultdict(lambda: (0, 0))
    for entry in entries:
        for size in entry['sizes']:
            if size['size_class']:
                key = entry['direction'], entry['host_kind'], size['size_class']
                n[key] = n[key][0] + size['copies'], n[key][1] + size['bytes']
    return n


def of_sites(report):
    """(copies, bytes) by the function of the program that made them."""
    n = collections.defaultdict(lambda: (0, 0))
    for row in report['transfers']:
        for frame in row['stack'] or []:
            if (frame['function'] or '').startswith('copy_site_'):
                site = frame['function']
                n[site] = n[site][0] + row['copies'], n[site][1] + row['bytes']
                break
    return n


def check(same, ledger, report, sites):
    """Compares through same(what, seen, truth); sites: the lines that the program printed, or None."""
    truth = of_ledger(ledger)
    for what, entries in ('sum of stacks', report['transfers']), ('totals', report['transfer_totals']):
        seen = of_report(entries)
        for key in sorted(set(seen) | set(truth), key=str):
            same(f'{what} {key}', seen[key], truth.get(key, (0, 0)))
    if sites is None:
        return
    seen = of_sites(report)
    for line in sites:
        name, n, size = line.split()
        same(name, seen[name], (int(n), int(size)))
