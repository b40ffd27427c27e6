import { mcpRevision, toolCall } from '../core/mcp.ts'
import { type HeaderView, textOf } from './forwarded.ts'

/** What the header fields say about an MCP request, or why they say nothing (`fault`). */
export type McpRequest =
  { readonly method: string; readonly name?: string; readonly fault?: never } | { readonly fault: string }

/** The fields of MCP 2026-07-28, Streamable HTTP, "Request Metadata". */
const fields: ReadonlySet<string> = new Set(['mcp-protocol-version', 'mcp-method', 'mcp-name'])
/** The methods whose requests name a tool, a resource or a prompt ("Standard Request Headers"). */
const namedMethods: ReadonlySet<string> = new Set([toolCall, 'resources/read', 'prompts/get'])
/** The maximum length of a value, in characters. */
const maxLength = 1024
/** Visible ASCII without a comma, because Node.js joins repeated fields with one. */
const plain = /^[\x21-\x2b\x2d-\x7e]+(?: +[\x21-\x2b\x2d-\x7e]+)*$/
const encoded = /^=\?base64\?([A-Za-z0-9+/]+={0,2})\?=$/
const control = /\p{C}|^\s|\s$/u

/**
 * Reads the fields of an MCP request strictly: a server must not be able to read another method or
 * name in them.
 */
export function mcpRequest(headers: HeaderView): McpRequest {
  // Applications read `Mcp_Name` as `Mcp-Name`, and proxies drop what `Connection` lists.
  const similar = Object.keys(headers).find((name) => !fields.has(name) && fields.has(name.replace(/[^a-z\d]/g, '-')))
  if (similar !== undefined || /\bmcp\b/i.test(textOf(headers, 'connection') ?? ''))
    return { fault: 'another field could replace or remove a field of MCP' }
  if (textOf(headers, 'mcp-protocol-version') !== mcpRevision)
    return {
      fault: `MCP-Protocol-Version is not exactly ${mcpRevision}, so the server may ignore Mcp-Method and Mcp-Name`,
    }
  const method = textOf(headers, 'mcp-method') ?? ''
  if (!isPlain(method) || method.includes(' ')) return { fault: 'Mcp-Method is missing, repeated or malformed' }
  const text = textOf(headers, 'mcp-name') ?? ''
  if (text === '' && !namedMethods.has(method)) return { method }
  const name = decoded(text)
  return name === undefined ? { fault: 'Mcp-Name is missing, repeated or malformed' } : { method, name }
}

function isPlain(text: string): boolean {
  return text.length <= maxLength && plain.test(text) && !text.startsWith('=?')
}

/** A name that is not plain ASCII is the Base64 of its UTF-8 ("Value Encoding"). */
function decoded(text: string): string | undefined {
  if (isPlain(text)) return text
  const base64 = text.length <= maxLength ? encoded.exec(text)?.[1] : undefined
  if (base64 === undefined) return undefined
  const bytes = Buffer.from(base64, 'base64')
  const name = bytes.toString('utf8')
  // Other programs may read unused bits, or bytes that are not UTF-8, in another way.
  const isCanonical = bytes.toString('base64') === base64 && bytes.equals(Buffer.from(name, 'utf8'))
  return isCanonical && !control.test(name) ? name : undefined
}
