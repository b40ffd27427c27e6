// Pictures of curves: SVG that is readable on a light and on a dark page.
export interface Line {
  readonly name: string
  readonly points: readonly { readonly x: number; readonly y: number; readonly from?: number; readonly to?: number }[]
}

export interface Chart {
  readonly title: string
  readonly xName: string
  readonly yName: string
  readonly lines: readonly Line[]
}

/** Values that are compared, in groups. */
export interface Bars {
  readonly title: string
  readonly groups: readonly { readonly name: string; readonly bars: readonly Bar[] }[]
}

interface Bar {
  readonly name: string
  readonly value: number
}

const [width, height] = [760, 380]
const area = { left: 64, right: 500, top: 60, bottom: 324 }
/** Colors that can be told apart on white and on black, also with a color vision deficiency. */
const colors = ['#2f7ed8', '#d9761a', '#2a9d6f', '#c2417f', '#8a6fd1', '#8f8f20', '#1aa3b8', '#9c5a3c', '#7a7f87']
const style =
  'text{fill:#1d2330;font:13px system-ui,sans-serif}.grid{stroke:#c4cad6}.paper{fill:#fff}.title{font-weight:600;font-size:15px}' +
  '@media(prefers-color-scheme:dark){text{fill:#e6e9ef}.grid{stroke:#454c5a}.paper{fill:#14171c}}'

/** Both axes are logarithmic, so a straight line that rises by a decade for a decade is linear. */
export function svgOf({ title, xName, yName, lines }: Chart): string {
  const all = lines.flatMap(({ points }) => points)
  const xs = decades(all.map(({ x }) => x))
  const ys = decades([...all.flatMap(({ y, from = y, to = y }) => [y, from, to])])
  const at = (value: number, [low, high]: Range, from: number, to: number) =>
    Math.round((from + ((Math.log10(value) - low) / (high - low)) * (to - from)) * 10) / 10
  const x = (value: number) => at(value, xs, area.left, area.right)
  const y = (value: number) => at(Math.max(value, 10 ** ys[0]), ys, area.bottom, area.top)
  const parts = frame(title, height)
  for (const tick of ticksOf(ys))
    parts.push(
      `<path class="grid" d="M${area.left} ${y(tick)}H${area.right}"/><text x="${area.left - 8}" y="${y(tick) + 4}" text-anchor="end">${shortNumber(tick)}</text>`,
    )
  for (const tick of ticksOf(xs))
    parts.push(
      `<path class="grid" d="M${x(tick)} ${area.top}V${area.bottom}"/><text x="${x(tick)}" y="${area.bottom + 18}" text-anchor="middle">${shortNumber(tick)}</text>`,
    )
  parts.push(
    `<text x="${(area.left + area.right) / 2}" y="${area.bottom + 42}" text-anchor="middle">${escaped(xName)}</text>`,
    `<text x="16" y="${area.top - 14}">${escaped(yName)}</text>`,
  )
  for (const [n, { name, points }] of lines.entries()) {
    const color = colors[n % colors.length]
    const path = points.map((point, at) => `${at === 0 ? 'M' : 'L'}${x(point.x)} ${y(point.y)}`).join('')
    const spreads = points
      .map((point) => `M${x(point.x)} ${y(point.from ?? point.y)}V${y(point.to ?? point.y)}`)
      .join('')
    const dots = points
      .map((point) => `<circle cx="${x(point.x)}" cy="${y(point.y)}" r="3.5" fill="${color}"/>`)
      .join('')
    const row = area.top + 30 + n * 22
    parts.push(
      `<path d="${path}" fill="none" stroke="${color}" stroke-width="2"/><path d="${spreads}" stroke="${color}" stroke-opacity=".6"/>${dots}`,
      `<rect x="${area.right + 16}" y="${row - 10}" width="12" height="12" rx="2" fill="${color}"/><text x="${area.right + 34}" y="${row}">${escaped(name)}</text>`,
    )
  }
  return `${parts.join('\n')}\n</svg>\n`
}

/** Each group has a scale of its own, from zero. A bar has the same color in all groups. */
export function svgOfBars({ title, groups }: Bars): string {
  const [left, longest, row] = [250, 400, 24]
  const colorOf = new Map<string, string | undefined>()
  const body: string[] = []
  let y = 62
  for (const { name, bars } of groups) {
    const most = Math.max(...bars.map(({ value }) => value), Number.MIN_VALUE)
    body.push(`<text class="title" x="16" y="${y}">${escaped(name)}</text>`)
    for (const bar of bars) {
      y += row
      if (!colorOf.has(bar.name)) colorOf.set(bar.name, colors[colorOf.size % colors.length])
      const length = Math.round((bar.value / most) * longest)
      body.push(
        `<text x="${left - 8}" y="${y}" text-anchor="end">${escaped(bar.name)}</text>`,
        `<rect x="${left}" y="${y - 13}" width="${Math.max(length, 1)}" height="16" rx="2" fill="${colorOf.get(bar.name)}"/>`,
        `<text x="${left + length + 8}" y="${y}">${shortNumber(bar.value)}</text>`,
      )
    }
    y += row + 14
  }
  return `${[...frame(title, y), ...body].join('\n')}\n</svg>\n`
}

function frame(title: string, tall: number): string[] {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${tall}" role="img" aria-label="${escaped(title)}">`,
    `<title>${escaped(title)}</title><style>${style}</style>`,
    `<rect class="paper" width="${width}" height="${tall}" rx="8"/><text class="title" x="16" y="26">${escaped(title)}</text>`,
  ]
}

type Range = readonly [low: number, high: number]

/** The powers of ten around the values; at least one decade, and a little more than the values. */
function decades(values: readonly number[]): Range {
  const logs = values.filter((value) => value > 0).map(Math.log10)
  const low = Math.floor(Math.min(...logs) + 1e-9)
  return [low, Math.max(low + 1, Math.ceil(Math.max(...logs) - 1e-9))]
}

function ticksOf([low, high]: Range): readonly number[] {
  const powers = Array.from({ length: high - low + 1 }, (_, n) => 10 ** (low + n))
  return high - low > 1
    ? powers
    : powers.flatMap((power) => (Math.log10(power) < high ? [power, 2 * power, 5 * power] : [power]))
}

/** `10k`, `1M`, `0.01` */
export function shortNumber(value: number): string {
  if (value >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`
  return value >= 1e4 ? `${Number((value / 1e3).toPrecision(3))}k` : String(Number(value.toPrecision(3)))
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
