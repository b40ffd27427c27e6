import { claimsOf } from '../config/claims-in-use.ts'
import type { Place } from '../config/document/diagnostics.ts'
import type { RuleConfig } from '../config/model/rule.ts'
import type { ApplicationSignInConfig, UpstreamConfig } from '../config/model/upstream.ts'
import { unreachable } from '../core/errors.ts'
import type { StepUp } from '../core/step-up.ts'
import { isSafe } from '../gate/cross-site.ts'
import { mcpText } from '../gate/rules/mcp-rule.ts'
import { requirementText } from '../gate/rules/requirement.ts'
import type { Route } from '../gate/rules/route-table.ts'
import type { DecisionStep } from '../gate/trace.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import type { KeyIdentity } from '../tokens/access-keys.ts'

/** One step of the decision, as a text for people. */
export interface Step {
  readonly name:
    | 'request'
    | 'host'
    | 'path'
    | 'mcp'
    | 'upstream'
    | 'rule'
    | 'logout call'
    | 'own sign-in'
    | 'session'
    | 'access token'
    | 'service account'
    | 'key'
    | 'scopes'
    | 'cross-site'
    | 'claims'
    | 'require'
    | 'step-up'
    | 'authorize_with'
  readonly text: string
  /** The setting that decides here. */
  readonly place?: Place | undefined
}

function aboutRoute(route: Route | undefined): Step[] {
  if (route === undefined) return [{ name: 'upstream', text: 'no upstream serves this host and path' }]
  const { upstream, rule, isLogout } = route
  const { name, place, logout, applicationSignIn } = upstream
  const found: Step = { name: 'upstream', text: `${name}: ${hostsText(upstream)}`, place }
  const signsIn = applicationSignIn !== undefined && rule.access !== 'public' && rule.respond === undefined
  if (!isLogout)
    return [
      found,
      { name: 'rule', text: ruleText(rule), place: rule.place },
      ...(signsIn ? [{ name: 'own sign-in', text: signInText(applicationSignIn) } as const] : []),
    ]
  const { method, target } = logout.call ?? {}
  const call = `afterwards the gateway sends ${method} ${target} to the application (logout.call)`
  return [
    found,
    { name: 'rule', text: 'the application’s own logout link (logout.paths)' },
    ...(logout.call === undefined ? [] : [{ name: 'logout call', text: call } as const]),
  ]
}

/** A step of the decision in words. */
export function stepsOf(step: DecisionStep): Step[] {
  switch (step.step) {
    case 'route':
      return aboutRoute(step.route)
    case 'anybody':
      return [{ name: 'session', text: 'not read' }]
    case 'session': {
      const isNeeded = step.isOptional ? 'used when present' : 'required'
      const { identity } = step
      const found = identity.kind === 'signed_in' ? `present, of ${identity.record.sub}` : 'absent'
      return [{ name: 'session', text: `${isNeeded}; ${found}` }]
    }
    case 'token': {
      if (step.record === undefined)
        return [{ name: 'access token', text: 'present, and not verified: give its claims with --as' }]
      const { sub, sid } = step.record
      const ending = sid === undefined ? '; it has no sid, so it does not end with a session' : ''
      const scopes = step.missing.length === 0 ? 'has all that are needed' : `lacks ${step.missing.join(', ')}`
      return [
        { name: 'access token', text: `used instead of a session; of ${sub}${ending}` },
        { name: 'scopes', text: `the token ${scopes}` },
      ]
    }
    case 'key':
      return [{ name: 'key', text: keyText(step.identity) }]
    case 'account':
      return [{ name: 'service account', text: accountText(step) }]
    case 'cross-site':
      return [{ name: 'cross-site', text: step.why ?? sameSiteText(step.facts) }]
    case 'requirement': {
      const name = claimsOf(step.requirement).length > 0 ? 'claims' : 'require'
      return [{ name, text: step.unmet?.why ?? `${requirementText(step.requirement)}: met` }]
    }
    case 'step-up':
      return [{ name: 'step-up', text: `${stepUpText(step.stepUp)}: ${step.unmet?.why ?? 'met'}` }]
    default:
      return unreachable(step)
  }
}

function keyText(identity: KeyIdentity): string {
  if (identity.kind === 'accepted') return `used instead of a session; of ${identity.record.sub}`
  return 'why' in identity ? identity.why : ''
}

function accountText({ name, identity }: Extract<DecisionStep, { step: 'account' }>): string {
  if (name === undefined || name === '') return 'not exactly one name and secret'
  return identity.kind === 'accepted'
    ? `${name}, used instead of a session; explain does not verify its secret`
    : 'there is none with this name'
}

function sameSiteText(facts: RequestFacts): string {
  const { method, secFetchSite, origin } = facts
  if (isSafe(facts)) return `${method} is a safe method: the requesting page does not matter`
  if (secFetchSite === undefined && origin === undefined)
    return 'neither Sec-Fetch-Site nor Origin is present: the request is not from a page of another site'
  return 'the requesting page is of this site, or of a trusted origin'
}

/** When the gateway signs a person in at the application, how, and with which secret. */
function signInText({ kind, page, action, values, password, asks }: ApplicationSignInConfig): string {
  const names = values.map(([name]) => name).join(' and ')
  const question = asks === undefined ? 'has the status 401' : 'matches asks'
  const redirect = page === undefined ? [] : [`redirects to ${page}`]
  const [when, how] = {
    form: [
      [...redirect, `has a form with ${names}`, ...(asks === undefined ? [] : [question])],
      `sends the form to ${action}`,
    ] as const,
    json: [[...redirect, question, 'is the first page of a session'], `sends JSON to ${action}`] as const,
    basic: [['asks for Basic'], 'sends Basic credentials from then on'] as const,
  }[kind]
  const secret =
    password === 'ask'
      ? 'the password that the person enters on a page of the gateway'
      : password.some((part) => typeof part === 'string')
        ? 'the password of a technical account'
        : `the password in the claim ${password.flat().join('.')}`
  return `when a response ${when.join(', or ')}, the gateway signs the person in by itself: it ${how}, with ${secret}`
}

/** Which requests an upstream serves. */
function hostsText({ hosts, path }: UpstreamConfig): string {
  const where = hosts.length === 0 ? 'any host' : hosts.join(', ')
  return path === '/' ? `${where}, any path` : `${where}, below ${path}`
}

/** Which requests a rule matches, and what it requires. */
function ruleText(rule: RuleConfig): string {
  if (rule.place === undefined) return 'no rule matches: a sign-in is required'
  const methods = rule.methods === undefined ? '' : `${rule.methods.join(', ')} `
  const clients = rule.clients === undefined ? '' : ` from ${rule.clients.text.join(' or ')}`
  const mcp = rule.mcp === undefined ? '' : ` for ${mcpText(rule.mcp)}`
  const name = rule.name === undefined ? '' : `"${rule.name}", `
  return `${name}${rule.setting}, the first match: ${methods}${rule.path.text}${clients}${mcp} ${accessText(rule)}`
}

function accessText({ access, unauthenticated, require, stepUp, mode, respond, ...callers }: RuleConfig): string {
  if (respond?.kind === 'maintenance') {
    const unless = respond.unless.map(requirementText).join(', and ')
    return `is under maintenance${unless === '' ? '' : `, unless ${unless}`}`
  }
  switch (access) {
    case 'public':
      return 'is public, and no identity is forwarded'
    case 'optional':
      return `is public, and the identity of a signed-in person${callersText(callers)} is forwarded`
    case 'signed_in': {
      const others = { auto: '', redirect: '; otherwise always redirects', '401': '; otherwise responds with 401' }
      const needed = [...require.map(requirementText), ...(stepUp === undefined ? [] : [stepUpText(stepUp)])]
      const requirements = needed.map((text) => `, and ${text}`).join('')
      const observed = mode === 'observe' ? ' (only observed)' : ''
      return `requires a sign-in${callersText(callers)}${requirements}${observed}${others[unauthenticated]}`
    }
  }
}

type Callers = Pick<RuleConfig, 'accessTokens' | 'serviceAccounts' | 'clientCertificates' | 'keys'>

function callersText({ accessTokens, serviceAccounts, clientCertificates, keys }: Callers): string {
  const certificate = clientCertificates === true ? ' or a client certificate' : ''
  const key = keys === true ? ' or a key' : ''
  const token = `${accessTokens === undefined ? '' : ' or an access token'}${certificate}${key}`
  if (serviceAccounts === undefined) return token
  const which = serviceAccounts === 'all' ? 'a service account' : `the service account ${serviceAccounts.join(' or ')}`
  return `${token} or ${which}`
}

/** `the authentication has acr mfa and was at most 900 s ago` */
function stepUpText({ acr_values, max_age }: StepUp): string {
  const parts = [
    acr_values && `has acr ${acr_values.join(' or ')}`,
    max_age === undefined ? undefined : `was at most ${max_age} s ago`,
  ].filter((part) => part !== undefined)
  return `the authentication ${parts.join(' and ')}`
}
