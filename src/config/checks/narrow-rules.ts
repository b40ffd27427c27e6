// Warnings about rules that restrict fewer paths than their reader expects.
import { below, type Report } from '../document/report.ts'
import type { GatewayConfig } from '../model/gateway.ts'
import type { RuleConfig } from '../model/rule.ts'
import type { UpstreamConfig } from '../model/upstream.ts'
import { settingOf } from './check.ts'
import { ruleIndexOf } from './rule-index.ts'

/** What a rule demands; without one, that people sign in. */
type Demands = Pick<RuleConfig, 'access' | 'require' | 'stepUp' | 'needsDeviceBinding' | 'accessTokens'> &
  Pick<RuleConfig, 'serviceAccounts' | 'mode'>

const signIn: Demands = { access: 'signed_in', require: [] }

export function narrowRules({ upstreams }: GatewayConfig, report: Report): void {
  const folders = new Folders(upstreams)
  for (const upstream of upstreams) {
    const at = settingOf(upstream.name, 'rules')
    if (!report.isValid(at, settingOf(upstream.name, 'path'))) continue
    for (const [index, rule] of upstream.rules.entries()) {
      const pathAt = below(below(at, index), 'path')
      onePage(rule, upstream, pathAt, report)
      elsewhere(rule, upstream, folders, pathAt, report)
    }
  }
}

/** A path without `*` at its end is one page, and the paths below it get less protection. */
function onePage(rule: RuleConfig, upstream: UpstreamConfig, at: string, report: Report): void {
  if (rule.path.below) return
  const folder = rule.path.segments.at(-1) === '' ? rule.path.segments.slice(0, -1) : rule.path.segments
  const text = `/${folder.map((name) => `${name}/`).join('')}`
  const { demands, name } = demandsBelow(folder, rule, upstream)
  if (!isStricter(rule, demands, upstream)) return
  report.warning(
    at,
    `is this one page, without the paths below it: ${text}x ${whatGetsIn(demands, name)}`,
    `write ${text}*, which includes ${rule.path.text}${ruleIndexOf(upstream.rules).hasPath(`${text}*`) ? `, or move the requirement to the rule for ${text}*` : ''}`,
  )
}

/** Another upstream, with a longer path, serves the paths of a rule. Its own rules apply. */
function elsewhere(rule: RuleConfig, upstream: UpstreamConfig, folders: Folders, at: string, report: Report): void {
  const named = rule.path.segments.filter((name) => name !== '')
  if (named.length === 0) return
  const hasPathsBelow = rule.path.below && rule.path.suffix === undefined
  for (const other of folders.around(named, hasPathsBelow, upstream)) {
    if (other.path.length <= upstream.path.length) continue
    const prefix = namesIn(other.path)
    if (!report.isValid(settingOf(other.name, 'rules'), settingOf(other.name, 'path'))) continue
    const isWithin = prefix.length <= named.length
    const { demands, name } = demandsBelow(isWithin ? named : prefix, rule, other)
    if (!isStricter(rule, demands, upstream)) continue
    const where = isWithin ? 'is never reached' : `does not apply to ${other.path}*`
    report.warning(
      at,
      `${where}: upstreams.${other.name} serves ${other.path}, and there such a path ${whatGetsIn(demands, name)}`,
      `write the rule below upstreams.${other.name}.rules too`,
    )
  }
}

/** What a request needs for a path below a folder, with the methods and clients of a rule. */
function demandsBelow(
  folder: readonly string[],
  { methods, clients }: RuleConfig,
  { rules, needsDeviceBinding }: UpstreamConfig,
): { readonly demands: Demands; readonly name: string | undefined } {
  const path = { text: '', segments: folder, below: true }
  const index = ruleIndexOf(rules).firstCovering({ ...signIn, unauthenticated: 'auto', path, methods, clients })
  const found = rules[index]
  const name = found === undefined ? undefined : `rules[${index}]`
  return { demands: { needsDeviceBinding, ...(found ?? signIn) }, name }
}

/** Whether some request meets `other` and not `rule`. */
function isStricter(rule: Demands, other: Demands, upstream: UpstreamConfig): boolean {
  if (rule.access !== 'signed_in') return false
  if (other.access !== 'signed_in') return true
  if ((rule.needsDeviceBinding ?? upstream.needsDeviceBinding) && other.needsDeviceBinding !== true) return true
  if (other.accessTokens !== undefined && lacksSome(other.accessTokens.scopes, rule.accessTokens?.scopes)) return true
  if (other.serviceAccounts !== undefined && rule.serviceAccounts === undefined) return true
  if (rule.mode === 'observe') return false
  const enforced = other.mode === 'observe' ? signIn : other
  const met = new Set(enforced.require.map((each) => JSON.stringify(each)))
  if (rule.require.some((each) => !met.has(JSON.stringify(each)))) return true
  return rule.stepUp !== undefined && JSON.stringify(rule.stepUp) !== JSON.stringify(enforced.stepUp)
}

/** Whether a token with these scopes may lack one of the wanted. Absent: no token suffices. */
function lacksSome(scopes: readonly string[], wanted: readonly string[] | undefined): boolean {
  return wanted === undefined || wanted.some((scope) => !scopes.includes(scope))
}

function whatGetsIn({ access }: Demands, name: string | undefined): string {
  const rule = name === undefined ? '' : ` (${name})`
  if (access !== 'signed_in') return `is open to everybody${rule}`
  return name === undefined ? 'is open to everybody who is signed in' : `needs less${rule}`
}

function namesIn(path: string): string[] {
  return path.split('/').filter((name) => name !== '')
}

/** The upstreams that serve a folder, by host and folder. `''` stands for all hosts. */
class Folders {
  readonly #served = new Map<string, UpstreamConfig[]>()
  readonly #below = new Map<string, UpstreamConfig[]>()

  constructor(upstreams: readonly UpstreamConfig[]) {
    for (const upstream of upstreams) {
      const names = namesIn(upstream.path)
      for (const host of hostsOf(upstream)) {
        add(this.#served, keyOf(host, names), upstream)
        for (let length = 1; length < names.length; length++)
          add(this.#below, keyOf(host, names.slice(0, length)), upstream)
      }
    }
  }

  /**
   * The upstreams whose folder contains the path, and with `below` also those whose folder lies
   * below it. Only those that share a host with `of`.
   */
  around(path: readonly string[], below: boolean, of: UpstreamConfig): ReadonlySet<UpstreamConfig> {
    return new Set(
      hostsOf(of).flatMap((host) => [
        ...path.flatMap((_, index) => this.#served.get(keyOf(host, path.slice(0, index + 1))) ?? []),
        ...((below ? this.#below.get(keyOf(host, path)) : undefined) ?? []),
      ]),
    )
  }
}

function hostsOf({ hosts }: UpstreamConfig): readonly string[] {
  return hosts.length === 0 ? [''] : hosts
}

function keyOf(host: string, names: readonly string[]): string {
  return `${host}/${names.join('/')}`
}

function add(map: Map<string, UpstreamConfig[]>, key: string, upstream: UpstreamConfig): void {
  const found = map.get(key)
  if (found === undefined) map.set(key, [upstream])
  else found.push(upstream)
}
