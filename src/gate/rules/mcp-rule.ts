import type { RuleConfig } from '../../config/model/rule.ts'
import { mcpRevision, toolCall } from '../../core/mcp.ts'
import { matchesExactly, matchesName, type NamePattern, parseNamePattern } from '../../core/patterns.ts'
import type { McpRequest } from '../../http/mcp-request.ts'

type McpRule = NonNullable<RuleConfig['mcp']>

const callPattern = parseNamePattern(toolCall)

/**
 * Whether a rule about MCP is for a request. A text says why the fields of the request do not tell:
 * then no rule may admit it, because another rule could demand less.
 */
export function isForMcp(rule: McpRule, request: McpRequest | undefined): boolean | string {
  if (request === undefined) return `Mcp-Method is missing: clients of MCP older than ${mcpRevision} do not send it`
  if (request.fault !== undefined) return request.fault
  const { method, name = '' } = request
  const isFor = (matches: typeof matchesName): boolean =>
    rule.method.some((each) => matches(each, method)) ||
    (matches(callPattern, method) && rule.call.some((each) => matches(each, name)))
  const isExactly = isFor(matchesExactly)
  // Letter case counts in MCP ("Case Sensitivity"), but a server may ignore it.
  if (isExactly !== isFor(matchesName)) return 'Mcp-Method or Mcp-Name differs from the rule in letter case only'
  return isExactly
}

/** `MCP calls of delete_* or MCP methods tools/list` */
export function mcpText({ call, method }: McpRule): string {
  const parts = [call.length > 0 && `calls of ${listed(call)}`, method.length > 0 && `methods ${listed(method)}`]
  return `MCP ${parts.filter((part) => part !== false).join(' and ')}`
}

function listed(patterns: readonly NamePattern[]): string {
  return patterns.map(({ text }) => text).join(', ')
}
