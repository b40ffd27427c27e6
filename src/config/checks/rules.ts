import { toolCall } from '../../core/mcp.ts'
import { matchesExactly, matchesMethod, matchesPath, type NamePattern, type PathPattern } from '../../core/patterns.ts'
import { areValid, type Setting } from '../document/report.ts'
import type { GatewayConfig } from '../model/gateway.ts'
import type { RequirementConfig } from '../model/requirement.ts'
import type { RuleConfig } from '../model/rule.ts'
import type { UpstreamConfig } from '../model/upstream.ts'
import type { At } from './check.ts'

export function rules({ path, rules }: UpstreamConfig, at: At): void {
  if (!areValid(at('rules'), at('path'))) return
  for (const [index, rule] of rules.entries()) {
    const [ruleAt, pathAt] = [at('rules', index), at('rules', index, 'path')]
    const unauthenticatedAt = at('rules', index, 'unauthenticated')
    const earlier = earlierCovering(rules, index)
    const contradiction = contradictionIn(rule)
    const conditionsHint =
      'each condition must be met: for one of several, write any_of: [a, b], or any: [{ … }, { … }]'
    if (contradiction !== undefined)
      at('rules', index, 'require').warning(`can never be met: ${contradiction}`, conditionsHint)
    if (earlier !== undefined)
      ruleAt.warning(
        `is never reached: rules[${earlier}] matches all of its requests`,
        'the first rule that matches decides',
      )
    if (!canMatchBelow(rule.path, path)) pathAt.warning(...outsideOf(path, rule.path))
    const isReached = earlier === undefined && canMatchBelow(rule.path, path)
    const doesNothing = (other: number) => changesNothing(rules[other] as RuleConfig, at('rules', other), other === 0)
    const { clients } = rule
    const isWithoutEffect = (other: number) =>
      doesNothing(other) || (clients !== undefined && !haveCommonPaths(rule, rules[other] as RuleConfig))
    if (isReached && doesNothing(index) && rules.every((_, other) => other <= index || isWithoutEffect(other)))
      ruleAt.warning(
        clients === undefined
          ? 'changes nothing: without it, these requests require a sign-in too'
          : 'changes nothing: networks says for which clients a rule is, and other clients need a sign-in too',
        clients === undefined
          ? 'write what it should require, such as require: { claim: groups, any_of: [admins] }, or access: public, or remove it'
          : `to refuse other clients, write require: { networks: [${clients.text.join(', ')}] } in place of networks`,
      )
    if (rule.access === 'signed_in') continue
    if (rule.path.suffix !== undefined && rule.path.segments.every((name) => name === '*'))
      pathAt.warning(
        `lets everybody request any path with this ending: many applications take /admin/x${rule.path.suffix} for /admin`,
        `name the folder of these files, such as /static/*${rule.path.suffix}`,
      )
    if (unauthenticatedAt.isSet) unauthenticatedAt.warning(`does not apply: access: ${rule.access} requires no sign-in`)
  }
}

/** Conditions of a rule that nobody can meet, because one excludes the other. */
function contradictionIn({ require, clients }: RuleConfig): string | undefined {
  const parts = require.flatMap(conjunctsOf)
  const networks = [...parts.filter((part) => part.kind === 'networks'), clients ?? []].flat()
  if (networks.some((one) => networks.some((other) => !one.networks.overlaps(other.networks))))
    return 'no address is in all of its networks'
  const tests = parts.filter((part) => part.kind === 'claim')
  for (const { claimText } of tests) {
    const own = tests.filter((test) => test.claimText === claimText)
    const only = new Set(own.flatMap(({ equals = [] }) => equals))
    const without = new Set(own.flatMap(({ noneOf = [] }) => noneOf))
    const isExcluded = (value: string) => without.has(value) || (only.size > 0 && !only.has(value))
    const needed = [...only, ...own.flatMap(({ allOf = [] }) => allOf)]
    if (only.size > 1 || needed.some(isExcluded) || own.some(({ anyOf }) => anyOf?.every(isExcluded)))
      return `its conditions about ${claimText} exclude each other`
  }
  return undefined
}

/** The requirements that all have to be met, without those in `any` and `not`. */
function conjunctsOf(requirement: RequirementConfig): readonly RequirementConfig[] {
  return requirement.kind === 'all' ? requirement.all.flatMap(conjunctsOf) : [requirement]
}

/** The settings of a rule that say more than which requests it is about, and who may send them. */
const settingsOfEffect = [
  ...['name', 'unauthenticated', 'require', 'authorize_with', 'device_binding', 'step_up', 'access_tokens'],
  ...['service_accounts', 'client_certificates', 'keys', 'mode', 'respond', 'headers', 'mcp'],
]

/** Whether the file says no more about a rule than that its requests require a sign-in. */
function changesNothing({ access, path, clients }: RuleConfig, ruleAt: Setting, isFirst: boolean): boolean {
  // After other rules, a rule for all paths says what the file does not have to say.
  if (access !== 'signed_in' || (path.text === '/*' && !isFirst && clients === undefined)) return false
  return settingsOfEffect.every((name) => !ruleAt.below(name).isSet)
}

/** Whether some path may match both rules, apart from the ends of names. */
function haveCommonPaths({ path: one }: RuleConfig, { path: other }: RuleConfig): boolean {
  const [short, long] = one.segments.length <= other.segments.length ? [one, other] : [other, one]
  if (short.segments.length < long.segments.length && !short.below) return false
  return short.segments.every(
    (name, index) => [name, long.segments[index]].includes('*') || name === long.segments[index],
  )
}

/**
 * The index of an earlier rule that matches all requests of a rule, which is then never reached.
 */
function earlierCovering(rules: readonly RuleConfig[], index: number): number | undefined {
  // A rule covers itself.
  const first = ruleIndexOf(rules).firstCovering(rules[index] as RuleConfig)
  return first >= 0 && first < index ? first : undefined
}

/** Whether a pattern can match a path of the upstream. */
export function canMatchBelow(pattern: PathPattern, path: UpstreamConfig['path']): boolean {
  const wanted = path.split('/').slice(1, -1)
  const { segments, below: isOpen } = pattern
  if (!isOpen && segments.length < wanted.length) return false
  return wanted.every(
    (name, index) => segments[index] === undefined || segments[index] === '*' || segments[index] === name,
  )
}

/** The message about a pattern that cannot match a path of the upstream, and the hint. */
export function outsideOf(path: UpstreamConfig['path'], { text }: PathPattern): [message: string, hint: string] {
  return [
    `is never reached: this upstream serves only paths below ${path}`,
    `write the path that clients use: ${path.slice(0, -1)}${text}`,
  ]
}

/** What a rule demands; without one, that people sign in. */
type Demands = Pick<RuleConfig, 'access' | 'require' | 'stepUp' | 'needsDeviceBinding' | 'accessTokens'> &
  Pick<RuleConfig, 'serviceAccounts' | 'clientCertificates' | 'keys' | 'mode' | 'authorizeWith'>

const signIn: Demands = { access: 'signed_in', require: [] }

/** Warns about rules that restrict fewer paths than their reader expects. */
export function narrowRules({ upstreams }: GatewayConfig, at: At): void {
  const areRulesValid = ({ name }: UpstreamConfig) =>
    areValid(at('upstreams', name, 'rules'), at('upstreams', name, 'path'))
  const folders = new Folders(upstreams)
  for (const upstream of upstreams.filter(areRulesValid))
    for (const [index, rule] of upstream.rules.entries()) {
      if (rule.respond?.kind === 'maintenance' || earlierCovering(upstream.rules, index) !== undefined) continue
      const pathAt = at('upstreams', upstream.name, 'rules', index, 'path')
      onePage(rule, upstream, pathAt)
      otherMethods(rule, upstream, at('upstreams', upstream.name, 'rules', index))
      earlierMethods(rule, index, upstream, at('upstreams', upstream.name, 'rules', index))
      for (const other of folders.around(rule, upstream))
        if (areRulesValid(other)) elsewhere(rule, upstream, other, pathAt)
    }
}

/** Names of folders that applications have for files which everybody may get. */
const staticFolder =
  /^(?:_next|assets?|build|css|dist|fonts?|icons?|images?|img|js|media|public|scripts|static|styles)$/

/** A path without `*` at its end is one page, and the paths below it get less protection. */
function onePage(rule: RuleConfig, upstream: UpstreamConfig, at: Setting): void {
  if (rule.path.below) return
  const folder = rule.path.segments.at(-1) === '' ? rule.path.segments.slice(0, -1) : rule.path.segments
  const text = `/${folder.map((name) => `${name}/`).join('')}`
  const { demands, name } = demandsBelow(folder, rule, upstream)
  if (rule.access !== 'signed_in' && rule.respond === undefined && staticFolder.test(folder.at(-1) ?? ''))
    if (demands.access === 'signed_in')
      at.warning(`is this one page, without the files below it: ${text}x needs a sign-in`, `write ${text}*`)
  if (!isStricter(rule, demands, upstream)) return
  at.warning(
    `is this one page, without the paths below it: ${text}x ${whatGetsIn(demands, name)}`,
    `write ${text}*, which includes ${rule.path.text}${ruleIndexOf(upstream.rules).hasPath(`${text}*`) ? `, or move the requirement to the rule for ${text}*` : ''}`,
  )
}

/** A rule for reading only: to write, which usually needs more, less is required. */
function otherMethods(rule: RuleConfig, upstream: UpstreamConfig, at: Setting): void {
  if (rule.methods === undefined || !rule.methods.every((method) => method === 'GET' || method === 'HEAD')) return
  const index = ruleIndexOf(upstream.rules).firstCovering({ ...rule, methods: ['POST'] })
  const { needsDeviceBinding, rules } = upstream
  const found = rules[index]
  // Rules for the same path differ on purpose.
  if (found?.path.text === rule.path.text || found?.respond !== undefined) return
  const demands = { needsDeviceBinding, ...(found ?? signIn) }
  if (!isStricter(rule, demands, upstream)) return
  at.below('methods').warning(
    `is for ${rule.methods.join(', ')} only: a request with another method, such as POST, ${whatGetsIn(demands, found && `rules[${index}]`)}`,
    'remove methods, or write a rule with this path for the other methods too',
  )
}

/** An earlier rule for more paths takes the requests with some methods, and demands less. */
function earlierMethods(rule: RuleConfig, index: number, upstream: UpstreamConfig, at: Setting): void {
  const { rules } = upstream
  for (const method of ['GET', 'POST'].filter((each) => matchesMethod(rule.methods, each))) {
    const first = ruleIndexOf(rules).firstCovering({ ...rule, methods: [method] })
    const found = first < index ? rules[first] : undefined
    if (found === undefined || found.respond !== undefined || found.path.text === rule.path.text) continue
    if (!isStricter(rule, found, upstream)) continue
    at.warning(
      `does not decide about ${method}: rules[${first}] matches first, so ${method} ${rule.path.text} ${whatGetsIn(found, `rules[${first}]`)}`,
      `write this rule before rules[${first}]: the first rule that matches decides`,
    )
    return
  }
}

/** Another upstream, with a longer path, serves the paths of a rule. Its own rules apply. */
function elsewhere(rule: RuleConfig, upstream: UpstreamConfig, other: UpstreamConfig, at: Setting): void {
  const [named, prefix] = [namesOf(rule.path), namesIn(other.path)]
  const isWithin = prefix.length <= named.length
  const { demands, name } = demandsBelow(isWithin ? named : prefix, rule, other)
  if (!isStricter(rule, demands, upstream)) return
  const where = isWithin ? 'is never reached' : `does not apply to ${other.path}*`
  at.warning(
    `${where}: upstreams.${other.name} serves ${other.path}, and there such a path ${whatGetsIn(demands, name)}`,
    `write the rule below upstreams.${other.name}.rules too`,
  )
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
  if (other.clientCertificates === true && rule.clientCertificates === undefined) return true
  if (other.keys === true && rule.keys === undefined) return true
  if (upstream.authorizeWith !== undefined && other.authorizeWith === false && rule.authorizeWith !== false) return true
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

function namesOf({ segments }: PathPattern): string[] {
  return segments.filter((name) => name !== '')
}

/** The upstreams that serve a folder, by host and folder. `''` means all hosts. */
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
   * The upstreams with a longer path than `upstream`, on a host of it, whose folder contains the
   * path of its rule, or lies below it where the rule matches all paths below.
   */
  around({ path }: RuleConfig, upstream: UpstreamConfig): readonly UpstreamConfig[] {
    const names = namesOf(path)
    if (names.length === 0) return []
    const found = hostsOf(upstream).flatMap((host) => [
      ...names.flatMap((_, index) => this.#served.get(keyOf(host, names.slice(0, index + 1))) ?? []),
      ...((path.below && path.suffix === undefined ? this.#below.get(keyOf(host, names)) : undefined) ?? []),
    ])
    return [...new Set(found)].filter((other) => other.path.length > upstream.path.length)
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

/** Finds rules of an upstream by the segments of their paths, because there may be thousands. */
class RuleIndex {
  readonly #rules: readonly RuleConfig[]
  readonly #root: Node = { rules: [], children: new Map() }
  readonly #texts: ReadonlySet<string>

  constructor(rules: readonly RuleConfig[]) {
    this.#rules = rules
    this.#texts = new Set(rules.map(({ path }) => path.text))
    for (const [index, { path }] of rules.entries()) {
      let node = this.#root
      for (const segment of path.segments) {
        const next = node.children.get(segment) ?? { rules: [], children: new Map() }
        node.children.set(segment, next)
        node = next
      }
      node.rules.push(index)
    }
  }

  /** The index of the first rule that matches all requests that `other` matches, or -1. */
  firstCovering(other: RuleConfig): number {
    const found = this.#along(this.#root, other.path.segments).map((rules) =>
      rules.find((index) => covers(this.#rules[index] as RuleConfig, other)),
    )
    const first = Math.min(...found.map((index) => index ?? Infinity))
    return first === Infinity ? -1 : first
  }

  hasPath(text: string): boolean {
    return this.#texts.has(text)
  }

  /** The rules whose segments begin the path. A "*" in a rule matches any segment. */
  #along({ rules, children }: Node, [segment, ...others]: readonly string[]): (readonly number[])[] {
    if (segment === undefined) return [rules]
    const names = segment === '*' ? ['*'] : [segment, '*']
    const nodes = names.flatMap((name) => children.get(name) ?? [])
    return [rules, ...nodes.flatMap((node) => this.#along(node, others))]
  }
}

interface Node {
  readonly rules: number[]
  readonly children: Map<string, Node>
}

const indexes = new WeakMap<readonly RuleConfig[], RuleIndex>()

/** The index of these rules, which is built at the first call. */
function ruleIndexOf(rules: readonly RuleConfig[]): RuleIndex {
  const index = indexes.get(rules) ?? new RuleIndex(rules)
  indexes.set(rules, index)
  return index
}

/** Whether a rule matches every request that the other rule matches. */
function covers(rule: RuleConfig, other: RuleConfig): boolean {
  if (rule.respond?.kind === 'maintenance' && rule.respond.unless.length > 0) return false
  const anyMethod = rule.methods === undefined
  const sameClients =
    rule.clients === undefined || (other.clients !== undefined && rule.clients.networks.covers(other.clients.networks))
  const sameMethods = anyMethod || (other.methods?.every((method) => matchesMethod(rule.methods, method)) ?? false)
  if (!sameClients || !sameMethods || !coversMcp(rule.mcp, other.mcp) || (other.path.below && !rule.path.below))
    return false
  // A "*" in the path of the other rule matches anything. Only a "*" covers it, because no segment
  // of this rule is named "*".
  const { suffix, ...path } = rule.path
  if (suffix === undefined || !other.path.below) return matchesPath(rule.path, other.path.segments)
  return other.path.suffix?.endsWith(suffix) === true && matchesPath(path, other.path.segments)
}

/** The same for the conditions about MCP. Absent: all requests. */
function coversMcp(rule: RuleConfig['mcp'], other: RuleConfig['mcp']): boolean {
  if (rule === undefined || other === undefined) return rule === undefined
  // A "*" of the other pattern matches anything. Only a "*" covers it.
  const covers = (patterns: readonly NamePattern[], text: string) => patterns.some((each) => matchesExactly(each, text))
  return (
    other.method.every(({ text }) => covers(rule.method, text)) &&
    (covers(rule.method, toolCall) || other.call.every(({ text }) => covers(rule.call, text)))
  )
}
