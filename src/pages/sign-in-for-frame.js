const isEmbedded = () => {
  try {
    return top.location.origin !== location.origin
  } catch {
    return true
  }
}
const base64url = (bytes) => {
  const letters = { '+': '-', '/': '_', '=': '' }
  return btoa(String.fromCharCode(...bytes)).replace(/[+/=]/g, (letter) => letters[letter])
}
const signInForFrame = async (event, signIn, signedIn, done) => {
  const opened = open('', '_blank', 'popup,width=500,height=700')
  if (!opened) return
  event.preventDefault()
  const secret = base64url(crypto.getRandomValues(new Uint8Array(32)))
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(secret))
  const url = new URL(signIn, location.href)
  url.searchParams.set('return_to', signedIn + '?frame=' + base64url(new Uint8Array(hash)))
  const receive = ({ source, origin, data }) => {
    if (source !== opened || origin !== location.origin || !data?.gatehouse) return
    removeEventListener('message', receive)
    const { code, prefix } = data.gatehouse
    const body = new URLSearchParams({ code, secret })
    void fetch(prefix + 'frame-session', { method: 'POST', body }).then(done, done)
  }
  addEventListener('message', receive)
  opened.location.replace(url)
}
