import { parseDocument } from 'yaml'
import schema from '../../schemas/gateway.schema.json' with { type: 'json' }
import type { Block } from './markdown.ts'

/**
 * What a YAML snippet of the documentation is. Its keys tell, so that pages need no marks:
 *
 * - `whole`: begins with `version`; `gatehouse check` accepts it as it stands
 * - `settings`: top-level settings, tested inside a small configuration file
 * - `upstream`: settings of an upstream, tested below one
 * - `modeline`: only the line that names the schema to an editor
 * - `included`: a map of upstreams; its first line is a comment with its path
 *   (`# upstreams/shop.yaml`)
 * - anything else belongs to another program, known by a key that all of its files have, or by a
 *   word behind the language, as in ```` ```yaml helm ````
 */
export type Kind = 'whole' | 'settings' | 'upstream' | 'modeline' | 'included' | (typeof others)[number]['kind']

/** Files of other programs, and the keys that they are known by. */
const others = [
  { kind: 'compose', keys: ['services'] },
  { kind: 'kubernetes', keys: ['apiVersion', 'kind'] },
  { kind: 'pod', keys: ['containers'] },
  { kind: 'prometheus', keys: ['scrape_configs'] },
  { kind: 'alerts', keys: ['groups'] },
  { kind: 'workflow', keys: ['on', 'jobs'] },
  { kind: 'collector', keys: ['receivers', 'exporters'] },
  { kind: 'helm', keys: [] },
  { kind: 'kustomize', keys: ['resources', 'components'] },
  { kind: 'theirs', keys: [] },
] as const

const ofTheFile = new Set(Object.keys(schema.properties))
const ofAnUpstream = new Set(Object.keys(schema.definitions.upstream.properties))

/** What a snippet is; `undefined` when nobody can tell. @throws {Error} when it is not YAML */
export function kindOf({ word, text }: Pick<Block, 'word' | 'text'>): Kind | undefined {
  const document = parseDocument(text)
  const [fault] = document.errors
  if (fault !== undefined) throw new Error(fault.message)
  if (word !== '') return others.find(({ kind }) => kind === word)?.kind
  const value: unknown = document.toJS()
  if (value === null) return /^# yaml-language-server: \$schema=/.test(text) ? 'modeline' : undefined
  if (typeof value !== 'object' || Array.isArray(value)) return undefined
  const keys = Object.keys(value)
  if (keys.includes('version') && keys.includes('external_url')) return 'whole'
  if (keys.every((key) => ofTheFile.has(key))) return 'settings'
  if (keys.every((key) => ofAnUpstream.has(key))) return 'upstream'
  if (/^# [\w./-]+\.yaml\n/.test(text) && Object.values(value).every(isUpstream)) return 'included'
  return others.find((other) => other.keys.length > 0 && other.keys.every((key) => keys.includes(key)))?.kind
}

function isUpstream(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'url' in value
}

/** A file that `gatehouse check` can take, out of a snippet of our own. */
export function wholeFile(kind: Kind, text: string): string {
  if (kind === 'whole') return text
  const has = (setting: string) => kind === 'settings' && new RegExp(`^${setting}:`, 'm').test(text)
  const lines = ['version: 1']
  if (!has('external_url')) lines.push('external_url: https://orders.example.com')
  if (!has('provider')) lines.push(`provider:\n${everyProvider}`)
  if (kind === 'included') lines.push('upstreams:', indented(text, 2))
  else if (kind === 'upstream') {
    const url = /^url:/m.test(text) ? '' : 'url: http://127.0.0.1:3000\n'
    lines.push('upstreams:', '  orders:', indented(url + text, 4))
  } else {
    // A page that is about one setting of the provider does not repeat those that every file has.
    lines.push(/\bissuer:/.test(text) ? text : text.replace(/^provider:\n/m, (line) => `${line}${everyProvider}\n`))
    if (!has('upstreams') && !has('include'))
      lines.push(
        `upstreams: { orders: { url: http://127.0.0.1:3000${/^  claims_from:/m.test(text) ? ', headers: { X-Groups: groups }' : ''} } }`,
      )
  }
  return `${lines.join('\n')}\n`
}

const everyProvider = '  issuer: https://id.example.com\n  client_id: orders\n  client_secret: { env: CLIENT_SECRET }'

function indented(text: string, by: number): string {
  return text.replaceAll(/^(?=.)/gm, ' '.repeat(by))
}
