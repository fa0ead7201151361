"""Draws the row groups of the table before and after: each is one box, time from left to right, sensors downwards."""
import json
import sys

WIDTH, HEIGHT, GAP, TOP = 560, 400, 40, 78
START, YEAR = 1_672_462_830_000_000, 365 * 86_400_000_000


def panel(x0, title, m):
    out = [f'<text x="{x0}" y="30" class="h">{title}</text>',
           f'<text x="{x0}" y="50">{m["row_groups"]} row groups in {m["files"]} files, {m["bytes"] / 1e6:.1f} MB</text>',
           '<text x="{}" y="67">a reader touches: one sensor, one day {:.1%} · one sensor, the year {:.1%} · one hour {:.1%}</text>'
           .format(x0, m["share"]["p1"], m["share"]["p2"], m["share"]["p3"]),
           f'<rect x="{x0}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" class="f"/>']
    for i, g in enumerate(sorted(m["boxes"], key=lambda g: (g["time"], g["sensor"]))):
        x = x0 + (g["time"][0] - START) / YEAR * WIDTH
        w = max(1.5, (g["time"][1] - g["time"][0]) / YEAR * WIDTH)
        low, high = (int(s[-5:]) for s in g["sensor"])
        y = TOP + (low - 1) / 100 * HEIGHT
        h = (high - low + 1) / 100 * HEIGHT
        out.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" fill="hsl({i * 47 % 360} 65% 55%)" class="b"/>')
    return out


def main(before, after, path):
    total = 2 * WIDTH + 3 * GAP
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="{TOP + HEIGHT + 50}" font-family="sans-serif" font-size="12">',
             '<style>.h{font-size:16px;font-weight:bold}.b{fill-opacity:.35;stroke:#222;stroke-width:.6}.f{fill:#fff;stroke:#999}</style>',
             f'<rect width="{total}" height="{TOP + HEIGHT + 50}" fill="#fafafa"/>']
    lines += panel(GAP, "As it arrived", json.load(open(before)))
    lines += panel(2 * GAP + WIDTH, "After clustering", json.load(open(after)))
    lines.append(f'<text x="{GAP}" y="{TOP + HEIGHT + 28}">left to right: one year of time · top to bottom: 100 sensors · '
                 'one box: the values that one row group holds</text></svg>')
    open(path, "w").write("\n".join(lines))


main(*sys.argv[1:4])
