import { type Document, isMap, isScalar, isSeq, type YAMLMap } from 'yaml'

type Mark = (value: unknown) => boolean

const isUrl: Mark = (value) => isScalar(value) && typeof value.value === 'string' && /^https?:/i.test(value.value)

/** Settings of which every configuration has at least one, and what their value looks like. */
const marks: Readonly<Record<string, Mark>> = {
  version: (value) => isScalar(value) && value.value === 1,
  external_url: isUrl,
  provider: isMap,
  providers: isMap,
  upstreams: isMap,
}

/** Settings of which every upstream has at least one. */
const marksOfUpstream: Readonly<Record<string, Mark>> = { url: isUrl, preset: isScalar, rules: isSeq, headers: isMap }

/** The same settings as text: after an error of YAML, the parser may misread all other lines. */
const lines = /^(?:external_url: *["']?https?:|(?:provider|providers|upstreams):[ \t\r]*(?:#.*)?$)/m
const linesOfUpstream = /^ +(?:url: *["']?https?:|(?:preset|rules|headers):)/m

/**
 * Whether a file is a configuration, or the upstreams of one (`isIncluded`), also if it has errors.
 * Diagnostics show nothing of any other file: it may be a file of secrets that somebody has named
 * by mistake.
 */
export function isConfiguration({ contents, errors }: Document, text: string, isIncluded: boolean): boolean {
  if (errors.length > 0 && (lines.test(text) || (isIncluded && linesOfUpstream.test(text)))) return true
  if (!isMap(contents)) return false
  if (hasOne(contents, marks)) return true
  return isIncluded && contents.items.some(({ value }) => isMap(value) && hasOne(value, marksOfUpstream))
}

function hasOne(map: YAMLMap, marks: Readonly<Record<string, Mark>>): boolean {
  return map.items.some(
    ({ key, value }) =>
      isScalar(key) && typeof key.value === 'string' && Object.hasOwn(marks, key.value) && marks[key.value]?.(value),
  )
}
