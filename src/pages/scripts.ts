import { sha256 } from '../core/random.ts'
import type { Response } from '../http/response.ts'
import type { NoticeMessages } from './messages/messages.ts'
import { texts as scripts } from './texts.ts'

const style = `
section { position: fixed; inset-block-end: 1rem; inset-inline-end: 1rem; z-index: 2147483647; box-sizing: border-box; max-width: min(24rem, calc(100vw - 2rem)); padding: 1rem 1.25rem; font: 1rem/1.5 system-ui, sans-serif; color: #1b1b1f; background: #fff; border: 1px solid #5b5b66; border-radius: .5rem; box-shadow: 0 .25rem 1rem rgb(0 0 0 / .3) }
p { margin: 0 0 .75rem }
a, button { display: inline-block; box-sizing: border-box; font: inherit; color: #fff; background: #1d4ed8; border: 1px solid #1d4ed8; border-radius: .375rem; padding: .375rem 1rem; margin-inline-end: .5rem; text-decoration: none; cursor: pointer }
.second { color: #1d4ed8; background: #fff }
a:focus-visible, button:focus-visible { outline: 3px solid #1b1b1f; outline-offset: 2px }
`

/** The texts of the notice, with their language and the direction of its script. */
export interface ScriptTexts extends NoticeMessages {
  readonly lang: string
  readonly dir: 'ltr' | 'rtl'
}

/** The script of the page at the end of a sign-in in another window. */
export const signedInScript =
  "new BroadcastChannel('gatehouse' + location.pathname.replace(/[^/]*$/, '')).postMessage({ order: 'connect' }); close()"

/** The pages of an origin that have a session in common. */
export interface ScriptScope {
  /** The path of the endpoints of their provider, or of those for any provider. */
  readonly prefix: string
  /** The names of the providers, if the pages accept several. */
  readonly providers: readonly string[]
  /** Pages of other sites show them in frames. */
  readonly isEmbedded?: boolean
}

/**
 * The script that an application includes in its pages, in a language: `notice.js`.
 * @param ifNoneMatch the field of the request (RFC 9110 §13.1.2)
 */
export function sessionScriptResponse(
  texts: ScriptTexts,
  reservedPrefix: string,
  { prefix, providers, isEmbedded = false }: ScriptScope = { prefix: reservedPrefix, providers: [] },
  ifNoneMatch?: string,
): Response {
  const scope = { prefix, name: `gatehouse${prefix}${providers.join(',')}`, commonPrefix: reservedPrefix }
  const notice = scripts.notice
    .replace('TEXTS', () => JSON.stringify(texts))
    .replace('SCOPE', () => JSON.stringify(scope))
    .replace('STYLE', () => JSON.stringify(style))
  const body = `{\n${isEmbedded ? scripts.signInForFrame : 'const isEmbedded = () => false'}\n${notice}}\n`
  const etag = `"${sha256(body).slice(0, 24)}"`
  const headers = {
    'Cache-Control': 'private, no-cache',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'X-Content-Type-Options': 'nosniff',
    ETag: etag,
    Vary: 'Accept-Language',
  }
  const isUnchanged = ifNoneMatch?.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag) === true
  if (isUnchanged) return { status: 304, headers, body: '' }
  return { status: 200, headers: { ...headers, 'Content-Type': 'text/javascript; charset=utf-8' }, body }
}

/**
 * The script of the sign-in page in a frame. After the sign-in, the frame loads its page again; in
 * place of an endpoint of the gateway, `home`.
 */
export function frameSignInScript(prefix: string, home: string): string {
  const page = scripts.frameSignIn.replace('PREFIX', () => literal(prefix)).replace('HOME', () => literal(home))
  return `{\n${scripts.signInForFrame}\n${page}}`
}

/** The script of the page at the end of a sign-in for a frame. No other origin gets the code. */
export function codeScript(code: string, prefix: string): string {
  return `opener?.postMessage({ gatehouse: ${literal({ code, prefix })} }, location.origin); close()`
}

/** A literal of JavaScript within a `<script>` element. */
function literal(value: unknown): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c')
}
