import {
  escape,
  type MergedSample,
  type Overview,
  type Quantiles,
  sampleMs,
  slotOf,
} from '../../src/entries/admin-page.ts'

/** How many reasons for refusals the page names. */
const maxReasons = 5

type Values = readonly (number | undefined)[]

interface Chart {
  readonly id: string
  readonly title: string
  /** Of the values, and the label of their axis. */
  readonly unit: string
  /** Name → values. */
  readonly lines: Readonly<Record<string, Values>>
  /** HTML. */
  readonly note?: string
}

/** Charts of the last 15 minutes, which the script draws. A text beside each has its values. */
export function chartsHtml(overview: Overview): string {
  const { samples, at } = overview
  if (samples.every((sample) => sample === undefined))
    return '<p>The first values appear ten seconds after the start.</p>'
  const newest = samples.length - 1
  // The same for ten seconds, so that updates are rare.
  const times = samples.map((_, index) => (slotOf(at) - (newest - index) * sampleMs) / 1000)
  return [
    '<p>The last 15 minutes, in steps of ten seconds. Times are estimates from the buckets of the histograms in <code>/metrics</code>.</p>',
    `<div class="charts">${chartsOf(overview)
      .map((chart) => chartHtml(chart, times))
      .join('\n')}</div>`,
  ].join('\n')
}

function chartsOf({ samples, sessionCounts, isShared }: Overview): readonly Chart[] {
  const of = (value: (sample: MergedSample) => number | undefined) => samples.map((sample) => sample && value(sample))
  const quantiles = (value: (sample: MergedSample) => Quantiles | undefined) => ({
    p50: of((sample) => inMs(value(sample)?.p50)),
    p99: of((sample) => inMs(value(sample)?.p99)),
  })
  return [
    { id: 'requests', title: 'Requests', unit: 'requests/s', lines: { requests: of((s) => s.requestsPerSecond) } },
    { id: 'duration', title: 'Response time', unit: 'ms', lines: quantiles((s) => s.durations) },
    {
      id: 'sign-ins',
      title: 'Sign-ins',
      unit: 'sign-ins/min',
      lines: { completed: of((s) => s.signInsPerMinute), failed: of((s) => s.failedSignInsPerMinute) },
    },
    { id: 'ended', title: 'Ended sessions', unit: 'sessions/min', lines: { ended: of((s) => s.endedPerMinute) } },
    {
      id: 'refusals',
      title: 'Refusals',
      unit: 'refusals/min',
      note: reasons(samples),
      lines: { refusals: of((s) => s.refusalsPerMinute) },
    },
    {
      id: 'sessions',
      title: 'Number of sessions',
      unit: 'sessions',
      lines: { sessions: sessionCounts },
      note: `, ${isShared ? 'of all replicas' : 'of this process'}; counted only while a page like this one is open`,
    },
    { id: 'store-time', title: 'Response time of the store', unit: 'ms', lines: quantiles((s) => s.store) },
    { id: 'provider-time', title: 'Response time of the provider', unit: 'ms', lines: quantiles((s) => s.provider) },
  ]
}

function reasons(samples: Overview['samples']): string {
  const totals = new Map<string, number>()
  for (const [code, count] of samples.flatMap((sample) => Object.entries(sample?.refusals ?? {})))
    totals.set(code, (totals.get(code) ?? 0) + count)
  const sorted = [...totals].toSorted(([, one], [, other]) => other - one)
  if (sorted.length === 0) return ''
  const rest = sorted.slice(maxReasons).reduce((sum, [, count]) => sum + count, 0)
  const items = sorted
    .slice(0, maxReasons)
    .map(([code, count]) => `<li><code>${escape(code).replaceAll('_', '_<wbr>')}</code> ${count}</li>`)
  return `<ul>${items.join('')}${rest === 0 ? '' : `<li>others ${rest}</li>`}</ul>`
}

function chartHtml({ id, title, unit, lines, note = '' }: Chart, times: readonly number[]): string {
  const texts = Object.entries(lines).map(([name, values]) => `${name}: ${latestAndHighest(values, unit)}`)
  const chart = { unit, names: Object.keys(lines), data: [times, ...Object.values(lines).map(rounded)] }
  const description = `${title}, the last 15 minutes, in ${unit}. The text of the figure has the values.`
  return [
    `<figure id="chart-${id}"><figcaption><h3>${title}</h3>${texts.join('<br>')}${note}</figcaption>`,
    `<div class="chart" role="img" aria-label="${description}" data-chart="${escape(JSON.stringify(chart))}"></div></figure>`,
  ].join('\n')
}

function latestAndHighest(values: Values, unit: string): string {
  const known = rounded(values).filter((value) => value !== null)
  return known.length === 0 ? 'no values' : `latest ${known.at(-1)}, highest ${Math.max(...known)} ${unit}`
}

/** Three digits of each value are more than a chart shows. `null`: a gap. */
function rounded(values: Values): readonly (number | null)[] {
  return values.map((value) =>
    value === undefined ? null : value < 100 ? Number(value.toPrecision(3)) : Math.round(value),
  )
}

function inMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1000
}
