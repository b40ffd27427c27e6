import { sha256 } from '../core/random.ts'
import type { Response } from '../http/response.ts'
import { signInForFrame } from './frame-script.ts'
import type { NoticeMessages } from './messages/messages.ts'

/**
 * The script that an application includes in its pages. It shows a notice before the session ends,
 * when it has ended, and when another person has signed in. One tab is connected to the event
 * stream and tells the others, because browsers open few connections to a host. It needs no
 * `unsafe-inline` and no `eval`: the notice is in a shadow tree with a constructed style sheet.
 */
const source = String.raw`(() => {
  const texts = TEXTS, { prefix, name, commonPrefix } = SCOPE
  FRAME
  if (document.documentElement.dataset.gatehouse) return
  document.documentElement.dataset.gatehouse = 'on'
  const warnBefore = Number(document.currentScript?.dataset.warnBefore || 120)
  const warnMs = warnBefore === 0 ? -Infinity : 1000 * (warnBefore > 0 ? warnBefore : 120)
  const signIn = prefix + 'sign-in?return_to=' + encodeURIComponent(commonPrefix + 'signed-in')
  const channel = new BroadcastChannel(name)
  let state = 'unknown', isLeader = false, source, last, person, timer, retry, notice, text

  const emit = (name, detail) =>
    document.dispatchEvent(new CustomEvent('gatehouse:' + name, { detail, cancelable: true }))
  const say = (words) => { if (text && text.textContent !== words) text.textContent = words }
  const hide = () => { if (notice) notice.remove(); notice = text = undefined }
  const element = (name, parent, words, attributes = {}) => {
    const made = document.createElement(name)
    for (const key in attributes) made.setAttribute(key, attributes[key])
    made.textContent = words
    parent.append(made)
    return made
  }
  const button = (box, words, act) => { element('button', box, words, { type: 'button' }).onclick = act }
  const signInLink = (box) => {
    element('a', box, texts.renew, { href: signIn, target: '_blank', rel: 'noopener' }).onclick = openSignIn
  }
  const show = (words, addAction) => {
    hide()
    notice = document.createElement('div')
    const root = notice.attachShadow({ mode: 'open' })
    const sheet = new CSSStyleSheet()
    sheet.replaceSync(STYLE)
    root.adoptedStyleSheets = [sheet]
    const box = element('section', root, '', { lang: texts.lang, dir: texts.dir, 'aria-label': texts.label })
    text = element('p', box, '', { role: 'alert' })
    addAction(box)
    element('button', box, texts.close, { type: 'button', class: 'second' }).onclick = hide
    document.body.append(notice)
    say(words)
  }
  const leftText = () => texts.expiring.replace('{n}', Math.max(1, Math.ceil((last.endsAt - Date.now()) / 60000)))

  // If the browser blocks the window, the link opens a tab.
  const openSignIn = (event) => {
    if (isEmbedded()) return signInForFrame(event, signIn, commonPrefix + 'signed-in', () => send('connect'))
    const opened = open('', 'gatehouse-sign-in', 'popup,width=500,height=700')
    if (!opened) return
    event.preventDefault()
    // Pages of other sites must not have a reference to this one. A second removal throws.
    try { opened.opener = null } catch {}
    opened.location.replace(signIn)
    opened.focus()
  }
  const stay = async () => {
    await fetch(prefix + 'session', { method: 'POST' }).catch(() => {})
    send('connect')
  }
  const expiring = () => {
    const { endsAt, canStay } = last
    if (emit('expiring', { expires_at: endsAt, can_stay: canStay, stay, sign_in: signIn }))
      show(leftText(), (box) => { if (canStay) button(box, texts.stay, stay); else signInLink(box) })
  }
  const ended = () => {
    const { reason } = last
    const words = reason === 'signed_in_elsewhere' ? texts.endedElsewhere : texts.ended
    if (emit('ended', { sign_in: signIn, reason })) show(words, signInLink)
  }
  const changed = () => {
    if (emit('changed', {})) show(texts.changed, (box) => button(box, texts.reload, () => location.reload()))
  }
  const tick = () => {
    clearTimeout(timer)
    const left = last.endsAt - Date.now()
    const next = left > warnMs ? 'signed_in' : last.canStay ? 'expiring' : 'last_minutes'
    if (next !== state) {
      const before = state
      state = next
      if (next !== 'signed_in') expiring()
      else if (before !== 'unknown' && before !== 'signed_out') { hide(); emit('renewed', { expires_at: last.endsAt }) }
    }
    if (state !== 'signed_in') say(leftText())
    timer = setTimeout(tick, Math.min(left > warnMs ? left - warnMs : 1000, 2 ** 30))
  }
  const learn = (message) => {
    const before = state
    const { isEnded, who = person } = last = message
    if (!isEnded && who === (person ??= who)) return tick()
    clearTimeout(timer)
    if (!isEnded) state = 'changed'
    else state = before === 'unknown' || before === 'signed_out' ? 'signed_out' : 'ended'
    if (state === before) return
    if (state === 'changed') changed()
    else if (state === 'ended') ended()
  }
  const tell = (message) => { learn(message); channel.postMessage(message) }
  const connect = () => {
    clearTimeout(retry)
    if (source) source.close()
    source = new EventSource(prefix + 'events')
    source.addEventListener('session', ({ data }) => {
      const { now, expires_at, absolute_expires_at, person: who } = JSON.parse(data)
      tell({ endsAt: Date.now() + expires_at - now, canStay: absolute_expires_at - expires_at > 1000, who })
    })
    source.addEventListener('ended', ({ data }) => {
      source.close()
      tell({ isEnded: true, reason: JSON.parse(data).reason })
    })
    source.onerror = () => { if (source.readyState === 2) retry = setTimeout(connect, 30000) }
  }
  const follow = (order) => {
    if (!isLeader) return
    if (order === 'connect' || last?.isEnded) connect()
    else if (last) channel.postMessage(last)
  }
  const send = (order) => { follow(order); channel.postMessage({ order }) }
  channel.onmessage = ({ data }) => { if (data.order) follow(data.order); else learn(data) }
  // The page at the end of a sign-in does not know at which provider the pages are signed in.
  const commonName = 'gatehouse' + commonPrefix
  if (name !== commonName) new BroadcastChannel(commonName).onmessage = ({ data }) => { if (data.order) follow(data.order) }
  addEventListener('focus', () => { if (state === 'ended' || state === 'signed_out') send('connect') })
  const lead = () => { isLeader = true; connect(); return new Promise(() => {}) }
  if (navigator.locks) { navigator.locks.request(name, lead); channel.postMessage({ order: 'state' }) }
  else lead()
})()
`

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

/** The script in a language. `ifNoneMatch`: the field of the request (RFC 9110 §13.1.2). */
export function sessionScriptResponse(
  texts: ScriptTexts,
  reservedPrefix: string,
  { prefix, providers, isEmbedded = false }: ScriptScope = { prefix: reservedPrefix, providers: [] },
  ifNoneMatch?: string,
): Response {
  const scope = { prefix, name: `gatehouse${prefix}${providers.join(',')}`, commonPrefix: reservedPrefix }
  const body = source
    .replace('TEXTS', () => JSON.stringify(texts))
    .replace('SCOPE', () => JSON.stringify(scope))
    .replace('FRAME', () => (isEmbedded ? signInForFrame : 'const isEmbedded = () => false'))
    .replace('STYLE', () => JSON.stringify(style))
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
