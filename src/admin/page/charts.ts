import { escape } from '../../pages/page.ts'
import type { Overview, QuantilesView, SampleView } from './view.ts'

const [width, height] = [300, 60]
/** A peak below this is shown as low as it is, in the unit of the chart. */
const smallestScale = { rate: 1, seconds: 0.01, sessions: 1 } as const
/** How many reasons for refusals the page names. */
const maxReasons = 5

type Values = readonly (number | undefined)[]

interface Chart {
  readonly id: string
  readonly title: string
  /** The second line is dashed, because color alone must not tell them apart. */
  readonly lines: readonly { readonly name: string; readonly values: Values }[]
  readonly unit: keyof typeof smallestScale
  /** The text beside it, as HTML. It has the values that the lines show. */
  readonly text: string
}

/** Small charts of the last 15 minutes. A text beside each has its values. */
export function chartsHtml(overview: Overview): string {
  if (overview.samples.every((sample) => sample === undefined))
    return '<p>The first values appear ten seconds after the start.</p>'
  return [
    '<p>The last 15 minutes, in steps of ten seconds. Times are estimates from the buckets of the histograms in <code>/metrics</code>.</p>',
    `<div class="charts">${chartsOf(overview).map(chartHtml).join('\n')}</div>`,
  ].join('\n')
}

function chartsOf({ samples, sessionCounts, isShared }: Overview): readonly Chart[] {
  const of = <T>(value: (sample: SampleView) => T) => samples.map((sample) => sample && value(sample))
  const requests = of(({ requestsPerSecond }) => requestsPerSecond)
  const signIns = of(({ signInsPerMinute }) => signInsPerMinute)
  const failed = of(({ failedSignInsPerMinute }) => failedSignInsPerMinute)
  const ended = of(({ endedPerMinute }) => endedPerMinute)
  const refusals = of(({ refusalsPerMinute }) => refusalsPerMinute)
  return [
    {
      ...{ id: 'requests', title: 'Requests', unit: 'rate', text: rateText(requests, 's') },
      lines: [{ name: 'requests per second', values: requests }],
    },
    latency(
      'duration',
      'Response time',
      of(({ durations }) => durations),
    ),
    {
      ...{ id: 'sign-ins', title: 'Sign-ins', unit: 'rate' },
      text: `completed: ${rateText(signIns, 'min')}<br>failed (dashed): ${rateText(failed, 'min')}`,
      lines: [
        { name: 'completed sign-ins per minute', values: signIns },
        { name: 'failed sign-ins per minute', values: failed },
      ],
    },
    {
      ...{ id: 'ended', title: 'Ended sessions', unit: 'rate', text: rateText(ended, 'min') },
      lines: [{ name: 'ended sessions per minute', values: ended }],
    },
    {
      ...{ id: 'refusals', title: 'Refusals', unit: 'rate' },
      text: `${rateText(refusals, 'min')}${reasons(samples)}`,
      lines: [{ name: 'refusals per minute', values: refusals }],
    },
    sessionsChart(sessionCounts, isShared),
    latency(
      'store-time',
      'Response time of the store',
      of(({ store }) => store),
    ),
    latency(
      'provider-time',
      'Response time of the provider',
      of(({ provider }) => provider),
    ),
  ]
}

function rateText(values: Values, unit: string): string {
  return `now ${rate(latest(values))}/${unit}, highest ${rate(highest(values))}/${unit}`
}

function sessionsChart(counts: Values, isShared: boolean): Chart {
  const now = counts.findLast((count) => count !== undefined)
  const known = now === undefined ? 'no values' : `now ${now}, highest ${highest(counts)}`
  const where = isShared ? 'of all replicas' : 'of this process'
  return {
    ...{ id: 'sessions', title: 'Number of sessions', unit: 'sessions' },
    text: `${known}, ${where}; counted only while a page like this one is open`,
    lines: [{ name: 'sessions', values: counts }],
  }
}

function latency(id: string, title: string, quantiles: readonly (QuantilesView | undefined)[]): Chart {
  const [p50, p99] = [quantiles.map((value) => value?.p50), quantiles.map((value) => value?.p99)]
  const text = (values: Values) => {
    const now = latest(values)
    return `now ${now === undefined ? 'none' : seconds(now)}, highest ${seconds(highest(values))}`
  }
  const isEmpty = highest(p99) === undefined
  return {
    ...{ id, title, unit: 'seconds' },
    text: isEmpty ? 'no values' : `p50: ${text(p50)}<br>p99 (dashed): ${text(p99)}`,
    lines: [
      { name: 'p50', values: p50 },
      { name: 'p99', values: p99 },
    ],
  }
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

function chartHtml({ id, title, lines, unit, text }: Chart): string {
  const top = Math.max(smallestScale[unit], ...lines.map(({ values }) => highest(values) ?? 0))
  const paths = lines.map(({ values }, index) => {
    const dashes = index === 0 ? '' : ' stroke-dasharray="4 4"'
    return `<path d="${pathOf(values, top)}"${dashes}/>`
  })
  const shown = lines.map(({ name }, index) => `${name}${index === 0 ? '' : ' (dashed)'}`).join(' and ')
  return [
    `<figure id="chart-${id}"><figcaption><h3>${title}</h3>${text}</figcaption>`,
    `<svg role="img" aria-labelledby="chart-${id}-title chart-${id}-desc" viewBox="0 0 ${width} ${height}" preserveAspectRatio="none">`,
    `<title id="chart-${id}-title">${title}, the last 15 minutes</title>`,
    `<desc id="chart-${id}-desc">A line of ${shown}. The text of the figure has the values.</desc>`,
    `${paths.join('')}</svg></figure>`,
  ].join('\n')
}

/** A line with gaps where there is no value. A value between two gaps is a dash. */
function pathOf(values: Values, top: number): string {
  const step = width / Math.max(1, values.length - 1)
  let path = ''
  let isDrawing = false
  for (const [index, value] of values.entries()) {
    const y = value === undefined ? 0 : height - 2 - (value / top) * (height - 4)
    const x = index * step
    if (value !== undefined)
      path += isDrawing ? `L${x.toFixed(1)} ${y.toFixed(1)}` : `M${(x - 3).toFixed(1)} ${y.toFixed(1)}h3`
    isDrawing = value !== undefined
  }
  return path
}

function latest(values: Values): number | undefined {
  return values.at(-1)
}

function highest(values: Values): number | undefined {
  const known = values.filter((value) => value !== undefined)
  return known.length === 0 ? undefined : Math.max(...known)
}

function rate(value = 0): string {
  return value === 0 || value >= 10 ? String(Math.round(value)) : value.toFixed(1)
}

function seconds(value = 0): string {
  const ms = value * 1000
  if (ms >= 1000) return `${value.toFixed(1)} s`
  return ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`
}
