import type { RuleConfig, UpstreamConfig } from '../config/model.ts'
import { requirementText } from '../rules/requirement.ts'

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

function accessText({ access, unauthenticated, require, mode }: RuleConfig): string {
  switch (access) {
    case 'public':
      return 'is public, and no identity is forwarded'
    case 'optional':
      return 'is public, and the identity of a signed-in person is forwarded'
    case 'signed_in': {
      const others = { auto: '', redirect: '; otherwise always redirects', '401': '; otherwise responds with 401' }
      const requirements = require.map((requirement) => `, and ${requirementText(requirement)}`).join('')
      const observed = mode === 'observe' ? ', which is only observed' : ''
      return `requires a sign-in${requirements}${observed}${others[unauthenticated]}`
    }
  }
}
