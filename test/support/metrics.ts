/** Parses a page of metrics: the values by name and labels as written, `name{label="value"}`. */
export interface MetricsPage {
  readonly text: string
  readonly types: ReadonlyMap<string, string>
  /** Returns 0 if the sample is missing. */
  value(sample: string): number
  /** All samples of one name. */
  samples(name: string): ReadonlyMap<string, number>
}

/** @throws when a line violates the text format of Prometheus */
export function parseMetrics(text: string): MetricsPage {
  const types = new Map<string, string>()
  const samples = new Map<string, number>()
  const help = new Set<string>()
  if (!text.endsWith('\n')) throw new Error('the last line has no end')
  for (const line of text.slice(0, -1).split('\n')) {
    const [, word, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? []
    if (word === 'HELP') help.add(name)
    else if (word === 'TYPE') {
      if (types.has(name)) throw new Error(`described twice: ${name}`)
      types.set(name, rest)
    } else {
      const sample =
        /^([a-z_:][\w:]*)((?:\{\w+="(?:[^"\\\n]|\\[\\"n])*"(?:,\w+="(?:[^"\\\n]|\\[\\"n])*")*\})?) (\S+)$/.exec(line)
      const [, metric = '', labels = '', value = ''] = sample ?? []
      if (sample === null || Number.isNaN(Number(value.replace('+Inf', 'Infinity'))))
        throw new Error(`not a sample: ${line}`)
      const family = metric.replace(/_(bucket|sum|count)$/, '')
      if (!types.has(metric) && types.get(family) !== 'histogram') throw new Error(`not described: ${metric}`)
      if (samples.has(metric + labels)) throw new Error(`said twice: ${line}`)
      samples.set(metric + labels, Number(value.replace('+Inf', 'Infinity')))
    }
  }
  for (const name of types.keys()) if (!help.has(name)) throw new Error(`without help: ${name}`)
  return {
    text,
    types,
    value: (sample) => samples.get(sample) ?? 0,
    samples: (name) => new Map([...samples].filter(([sample]) => sample.replace(/\{.*/s, '') === name)),
  }
}

export async function readMetrics(adminUrl: string): Promise<MetricsPage> {
  const response = await fetch(`${adminUrl}/metrics`)
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${response.status}: ${text}`)
  if (response.headers.get('content-type') !== 'text/plain; version=0.0.4; charset=utf-8')
    throw new Error(`not the type of metrics: ${response.headers.get('content-type')}`)
  return parseMetrics(text)
}
