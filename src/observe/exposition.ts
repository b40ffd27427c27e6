import type { Cell, Family, Merge } from './metrics.ts'

export const expositionType = 'text/plain; version=0.0.4; charset=utf-8'

/** Writes metrics in the text exposition format 0.0.4 of Prometheus. */
export function exposition(families: readonly Family[]): string {
  return families.map(familyText).join('')
}

function familyText({ name, help, kind, labels, bounds, cells }: Family): string {
  let text = `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${kind}\n`
  for (const cell of cells) {
    const named = labels.map((label, index) => `${label}="${labelText(cell.labels[index] ?? '')}"`)
    text +=
      kind === 'histogram'
        ? histogramText(name, named, bounds, cell.values)
        : `${name}${braced(named)} ${numberText(cell.values[0] ?? 0)}\n`
  }
  return text
}

function histogramText(
  name: string,
  labels: readonly string[],
  bounds: readonly number[],
  values: readonly number[],
): string {
  let text = ''
  let below = 0
  for (const [index, bound] of [...bounds, Infinity].entries()) {
    below += values[index] ?? 0
    text += `${name}_bucket${braced([...labels, `le="${numberText(bound)}"`])} ${below}\n`
  }
  const sum = numberText(values[bounds.length + 1] ?? 0)
  return `${text}${name}_sum${braced(labels)} ${sum}\n${name}_count${braced(labels)} ${below}\n`
}

function braced(labels: readonly string[]): string {
  return labels.length === 0 ? '' : `{${labels.join(',')}}`
}

function labelText(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

function numberText(value: number): string {
  if (value === Infinity) return '+Inf'
  return value === -Infinity ? '-Inf' : String(value)
}

/** Merges the metrics of several processes. */
export function merged(processes: readonly (readonly Family[])[]): readonly Family[] {
  const byName = new Map<string, Family>()
  for (const family of processes.flat()) {
    const known = byName.get(family.name)
    byName.set(family.name, known === undefined ? family : mergedFamily(known, family))
  }
  return [...byName.values()]
}

function mergedFamily(one: Family, other: Family): Family {
  const cells = new Map<string, Cell>()
  for (const cell of [...one.cells, ...other.cells]) {
    const key = cell.labels.join('\n')
    const known = cells.get(key)
    const values = known?.values.map((value, index) => mergedValue(one.merge, value, cell.values[index] ?? 0))
    cells.set(key, values === undefined ? cell : { labels: cell.labels, values })
  }
  return { ...one, cells: [...cells.values()] }
}

function mergedValue(merge: Merge, one: number, other: number): number {
  if (merge === 'sum') return one + other
  return merge === 'max' ? Math.max(one, other) : Math.min(one, other)
}
