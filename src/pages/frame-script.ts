import { texts } from './texts.ts'

/**
 * The script of the sign-in page in a frame. After the sign-in, the frame loads its page again; in
 * place of an endpoint of the gateway, `home`.
 */
export function frameSignInScript(prefix: string, home: string): string {
  const page = texts.frameSignIn.replace('PREFIX', () => literal(prefix)).replace('HOME', () => literal(home))
  return `{\n${texts.signInForFrame}\n${page}}`
}

/** The script of the page at the end of a sign-in for a frame. No other origin gets the code. */
export function codeScript(code: string, prefix: string): string {
  return `opener?.postMessage({ gatehouse: ${literal({ code, prefix })} }, location.origin); close()`
}

/** A literal of JavaScript within a `<script>` element. */
function literal(value: unknown): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c')
}
