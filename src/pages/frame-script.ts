/**
 * Defines `signInForFrame`, for the click on a link to the sign-in in a frame of another site. A
 * window signs the person in, and gives a code to the frame (see `frameSession`). The frame accepts
 * the code only from a page of this origin in that window. The code works only with the secret,
 * which the frame keeps. If the browser blocks the window, the browser follows the link.
 */
export const signInForFrame = String.raw`const isEmbedded = () => {
    try { return top.location.origin !== location.origin } catch { return true }
  }
  const base64url = (bytes) => btoa(String.fromCharCode(...bytes)).replace(/\+/g, '-').replace(/\//g, '_').replace(/=/g, '')
  const signInForFrame = async (event, signIn, signedIn, done) => {
    const opened = open('', '_blank', 'popup,width=500,height=700')
    if (!opened) return
    event.preventDefault()
    const secret = base64url(crypto.getRandomValues(new Uint8Array(32)))
    const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(secret))
    const url = new URL(signIn, location.href)
    url.searchParams.set('return_to', signedIn + '?frame=' + base64url(new Uint8Array(hash)))
    addEventListener('message', async function receive({ source, origin, data }) {
      if (source !== opened || origin !== location.origin || !data?.gatehouse) return
      removeEventListener('message', receive)
      const { code, prefix } = data.gatehouse
      await fetch(prefix + 'frame-session', { method: 'POST', body: new URLSearchParams({ code, secret }) }).catch(() => {})
      done()
    })
    opened.location.replace(url)
  }`

/**
 * The script of the sign-in page in a frame. After the sign-in, the frame loads its page again; in
 * place of an endpoint of the gateway, `home`.
 */
export function frameSignInScript(prefix: string, home: string): string {
  return `(() => {
  const prefix = ${literal(prefix)}, home = ${literal(home)}
  ${signInForFrame}
  if (!isEmbedded()) return
  const link = document.querySelector('a.first')
  const reload = () =>
    location.replace(location.pathname.startsWith(prefix) ? home : location.pathname + location.search)
  link.onclick = (event) => signInForFrame(event, link.href, prefix + 'signed-in', reload)
})()`
}

/** The script of the page at the end of a sign-in for a frame. No other origin gets the code. */
export function codeScript(code: string, prefix: string): string {
  return `opener?.postMessage({ gatehouse: ${literal({ code, prefix })} }, location.origin); close()`
}

/** A literal of JavaScript within a `<script>` element. */
function literal(value: unknown): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c')
}
