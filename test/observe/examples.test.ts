import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parser } from '@prometheus-io/lezer-promql'
import { parse } from 'yaml'
import { exposition } from '../../src/observe/exposition.ts'
import type { Family } from '../../src/observe/metrics.ts'
import { issueCertificates } from '../support/certificates.ts'
import { parseMetrics } from '../support/metrics.ts'
import { startWorld } from '../support/world.ts'

const root = new URL('../../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, root), 'utf8')

interface Expression {
  readonly where: string
  readonly text: string
}

interface Panel {
  readonly title: string
  readonly targets?: readonly { readonly expr: string }[]
}

function dashboardExpressions(): Expression[] {
  const { panels } = JSON.parse(read('examples/grafana/dashboard.json')) as { readonly panels: readonly Panel[] }
  return panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({ where: `panel "${title}"`, text: expr.replaceAll('$__rate_interval', '5m') })),
  )
}

interface Alerts {
  readonly groups: readonly {
    readonly rules: readonly {
      readonly alert: string
      readonly expr: string
      readonly labels: { readonly severity: string }
      readonly annotations: { readonly summary: string; readonly description?: string }
    }[]
  }[]
}

const { groups } = parse(read('charts/gatehouse/alerts.yaml')) as Alerts
const alerts = groups.flatMap(({ rules }) => rules)
const alertExpressions = alerts.map(({ alert, expr }) => ({ where: alert, text: expr }))

/** What an expression looks at, or what is wrong with how it is written. */
function look({ text }: Expression) {
  const selected: { metric: string; labels: string[]; values: string[] }[] = []
  const grouped: string[] = []
  const faults: string[] = []
  parser.parse(text).iterate({
    enter: ({ name, from, to, type }) => {
      const here = text.slice(from, to)
      if (type.isError) faults.push(`at ${from}: ${text.slice(from, from + 20)}`)
      if (name === 'VectorSelector') selected.push({ metric: /^\w+/.exec(here)?.[0] ?? '', labels: [], values: [] })
      if (name === 'UnquotedLabelMatcher') {
        const [, label = '', value = ''] = /^(\w+)\s*(?:=~|!~|!=|=)\s*"(.*)"$/.exec(here) ?? []
        selected.at(-1)?.labels.push(label)
        if (label === 'event') selected.at(-1)?.values.push(value)
      }
      if (name === 'GroupingLabels') grouped.push(...here.replaceAll(/[()\s]/g, '').split(','))
    },
  })
  return { selected, grouped, faults }
}

/** The family of a sample's name: a histogram has three. */
function familyOf(metric: string, families: readonly Family[]): Family | undefined {
  return families.find(({ name, kind }) =>
    kind === 'histogram' ? metric.replace(/_(bucket|sum|count)$/, '') === name && metric !== name : metric === name,
  )
}

const ofPrometheus = ['job', 'instance']

test('Every metric, label and event of the dashboard and the alerts exists', async (t) => {
  const world = await startWorld(t, { store: 'redis' })
  const families = world.replicas[0]?.metrics.collect() ?? []
  const source = sourceOf('src/')
  const expressions = [...dashboardExpressions(), ...alertExpressions]

  assert.ok(expressions.length > 40)
  for (const expression of expressions) {
    const { selected, grouped, faults } = look(expression)
    assert.deepEqual(faults, [], `${expression.where}: ${expression.text}`)
    const known = new Set([...ofPrometheus, 'le'])
    for (const { metric, labels, values } of selected) {
      if (metric === 'up') continue
      const family = familyOf(metric, families)
      assert.ok(family, `${expression.where}: there is no metric ${metric}`)
      for (const label of family.labels) known.add(label)
      for (const label of labels)
        assert.ok([...ofPrometheus, ...family.labels].includes(label), `${expression.where}: ${metric} has no ${label}`)
      for (const event of values.flatMap((value) => value.replaceAll('\\\\', '').split('|')))
        assert.ok(source.includes(`'${event}'`), `${expression.where}: nothing is logged as ${event}`)
    }
    for (const label of grouped) assert.ok(known.has(label), `${expression.where}: nothing has a label ${label}`)
  }
})

function sourceOf(folder: string): string {
  const files = readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' })
  return files
    .filter((file) => file.endsWith('.ts'))
    .map((file) => read(`${folder}${file}`))
    .join('\n')
}

test('Counters with an alert on their increase exist from the start', async (t) => {
  const world = await startWorld(t)
  const page = parseMetrics(exposition(world.replicas[0]?.metrics.collect() ?? []))

  for (const expression of alertExpressions.filter(({ text }) => text.includes('increase('))) {
    const [{ metric, values } = { metric: '', values: [] }] = look(expression).selected
    const samples = [...page.samples(metric).keys()]
    assert.ok(samples.length > 0, `${expression.where}: ${metric}`)
    for (const event of values.flatMap((value) => value.replaceAll('\\\\', '').split('|')))
      assert.ok(
        samples.some((sample) => sample.includes(`event="${event}"`)),
        `${expression.where}: ${event}`,
      )
  }
})

test('Every alert has a severity and says what to look at', () => {
  assert.equal(new Set(alerts.map(({ alert }) => alert)).size, alerts.length)
  for (const { alert, labels, annotations } of alerts) {
    assert.match(alert, /^Gatehouse[A-Z]\w+$/)
    assert.ok(['critical', 'warning'].includes(labels.severity))
    assert.ok(annotations.summary.length > 10)
  }
})

test('The documentation describes every metric and no others', async (t) => {
  const { server } = issueCertificates()
  const world = await startWorld(t, {
    listen: (address) => `{ address: "${address}", tls: { cert_file: "${server.cert}", key_file: "${server.key}" } }`,
    externalUrl: (port) => `https://localhost:${port}`,
  })
  const names = world.replicas[0]?.metrics.collect().map(({ name }) => name) ?? []
  const page = read('docs/observability.md')
  const described = [...page.matchAll(/^\| `((?:gatehouse|process|nodejs)_\w+)`/gm)].map(([, name = '']) => name)

  assert.deepEqual(described.toSorted(), names.toSorted())
})
