import type { RuleConfig } from '../config/model/rule.ts'
import type { UpstreamConfig } from '../config/model/upstream.ts'
import type { StepUp } from '../core/step-up.ts'
import { requirementText } from '../gate/rules/requirement.ts'

/** Which requests an upstream serves. */
export function hostsText({ hosts, path }: UpstreamConfig): string {
  const where = hosts.length === 0 ? 'any host' : hosts.join(', ')
  return path === '/' ? `${where}, any path` : `${where}, below ${path}`
}

/** Which requests a rule matches, and what it requires. */
export function ruleText(rule: RuleConfig): string {
  if (rule.place === undefined) return 'no rule matches: a sign-in is required'
  const methods = rule.methods === undefined ? '' : `${rule.methods.join(', ')} `
  const clients = rule.clients === undefined ? '' : ` from ${rule.clients.text.join(' or ')}`
  const name = rule.name === undefined ? '' : `"${rule.name}", `
  return `${name}${rule.setting}, the first match: ${methods}${rule.path.text}${clients} ${accessText(rule)}`
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

type Callers = Pick<RuleConfig, 'accessTokens' | 'serviceAccounts' | 'clientCertificates'>

function callersText({ accessTokens, serviceAccounts, clientCertificates }: Callers): string {
  const certificate = clientCertificates === true ? ' or a client certificate' : ''
  const token = `${accessTokens === undefined ? '' : ' or an access token'}${certificate}`
  if (serviceAccounts === undefined) return token
  const which = serviceAccounts === 'all' ? 'a service account' : `the service account ${serviceAccounts.join(' or ')}`
  return `${token} or ${which}`
}

/** `the authentication has acr mfa and was at most 900 s ago` */
export function stepUpText({ acr_values, max_age }: StepUp): string {
  const parts = [
    acr_values && `has acr ${acr_values.join(' or ')}`,
    max_age === undefined ? undefined : `was at most ${max_age} s ago`,
  ].filter((part) => part !== undefined)
  return `the authentication ${parts.join(' and ')}`
}
