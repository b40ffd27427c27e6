// Warnings about rules that restrict fewer paths than their reader expects.
import { below, type Report } from '../document/report.ts'
import type { GatewayConfig, RuleConfig, UpstreamConfig } from '../model.ts'
import { covers, settingOf } from './upstreams.ts'

/** What a rule demands; without one, that people sign in. */
type Demands = Pick<RuleConfig, 'access' | 'require' | 'stepUp' | 'needsDeviceBinding' | 'accessTokens'> &
  Pick<RuleConfig, 'serviceAccounts' | 'mode'>

const signIn: Demands = { access: 'signed_in', require: [] }

export function narrowRules({ upstreams }: GatewayConfig, report: Report): void {
  const inFolders = upstreams.filter(({ path }) => path !== '/')
  for (const upstream of upstreams) {
    const at = settingOf(upstream.name, 'rules')
    if (!report.isValid(at, settingOf(upstream.name, 'path'))) continue
    for (const [index, rule] of upstream.rules.entries()) {
      const pathAt = below(below(at, index), 'path')
      onePage(rule, upstream, pathAt, report)
      elsewhere(rule, upstream, inFolders, pathAt, report)
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
    `write ${text}*, which includes ${rule.path.text}${upstream.rules.some((each) => each.path.text === `${text}*`) ? `, or move the requirement to the rule for ${text}*` : ''}`,
  )
}

/** Another upstream, with a longer path, serves the paths of a rule. Its own rules apply. */
function elsewhere(
  rule: RuleConfig,
  upstream: UpstreamConfig,
  inFolders: readonly UpstreamConfig[],
  at: string,
  report: Report,
): void {
  const named = rule.path.segments.filter((name) => name !== '')
  if (named.length === 0) return
  for (const other of inFolders) {
    if (other.path.length <= upstream.path.length || !servesAllHosts(other, upstream)) continue
    const prefix = other.path.split('/').filter((name) => name !== '')
    if (!report.isValid(settingOf(other.name, 'rules'), settingOf(other.name, 'path'))) continue
    const isWithin = startsWith(named, prefix)
    if (!isWithin && !(rule.path.below && rule.path.suffix === undefined && startsWith(prefix, named))) continue
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
  const index = rules.findIndex((each) => covers(each, { ...signIn, unauthenticated: 'auto', path, methods, clients }))
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

function startsWith(segments: readonly string[], prefix: readonly string[]): boolean {
  return prefix.every((name, index) => name === segments[index])
}

/** Whether an upstream gets the requests of all hosts of another one. */
function servesAllHosts({ hosts }: UpstreamConfig, { hosts: others }: UpstreamConfig): boolean {
  return hosts.length === 0 ? others.length === 0 : others.some((host) => hosts.includes(host))
}
