import { html, Markup } from './html.ts'

const style = new Markup(`
  :root { color-scheme: light dark; --page: #d9dfe6; --paper: #fff; --ink: #1b1b1b; --soft: #5d6670; --line: #c3ccd6; --edge: #7f8fa3; --bar: #eceff3;
    --head: #f4f6f8; --link: #1d4f91; --key: #e3edf8; --notice: #fff4d6; --open: #1f6219; --closed: #8f2515 }
  @media (prefers-color-scheme: dark) {
    :root { --page: #12161b; --paper: #1b2027; --ink: #e6e6e6; --soft: #a4adb7; --line: #3c4651; --edge: #55606d; --bar: #262d36;
      --head: #232a33; --link: #8ab4f8; --key: #24364b; --notice: #443612; --open: #7fd077; --closed: #ff8f85 }
  }
  * { box-sizing: border-box }
  body { margin: 0; background: var(--page); color: var(--ink); font: 14px/1.45 Verdana, 'DejaVu Sans', Geneva, sans-serif }
  .window { max-width: 1010px; margin: 24px auto; background: var(--paper); border: 1px solid var(--edge) }
  .title { background: #28507f; color: #fff; padding: 12px 20px; display: flex; align-items: baseline; gap: 14px }
  .title b { font-size: 17px }
  .title span { color: #d3e0ef; font-size: 12px; flex: 1 }
  nav { background: var(--bar); border-bottom: 1px solid var(--line); padding: 8px 20px; display: flex; flex-wrap: wrap; gap: 4px 22px; font-size: 13px }
  a { color: var(--link) }
  .title a { color: #fff }
  main { padding: 18px 20px 22px }
  h1 { font-size: 30px; line-height: 1.2; margin: 2px 0 4px; font-weight: bold }
  h2 { font-size: 14px; margin: 22px 0 6px }
  .soft { color: var(--soft) }
  #ended { background: var(--notice); border: 1px solid #d9a520; padding: 14px 18px; margin: 0 0 16px; font-size: 16px }
  [hidden] { display: none }
  table { width: 100%; border-collapse: collapse; table-layout: fixed }
  th, td { border: 1px solid var(--line); padding: 5px 9px; text-align: left; vertical-align: top; overflow-wrap: anywhere; font-size: 13px }
  th { width: 230px; font-weight: normal; background: var(--head) }
  summary { margin: 12px 0; cursor: pointer; font-size: 13px; color: var(--link) }
  .identity th { font-weight: bold; background: var(--key) }
  .live { display: grid; grid-template-columns: 190px 90px 1fr; gap: 6px 12px; align-items: center; font-size: 13px }
  .state { text-align: center; padding: 2px 0; border: 1px solid; background: var(--head); color: var(--soft) }
  .state.open { color: var(--open) }
  .state.closed { color: var(--closed) }
  button { font: inherit; color: inherit; padding: 3px 12px; background: var(--bar); border: 1px solid var(--edge); cursor: pointer }
  pre { margin: 8px 0 0; padding: 10px; background: var(--head); border: 1px solid var(--line); overflow: auto; max-height: 220px; font-size: 12px }
  @media (max-width: 600px) {
    th { width: 130px }
    .live { grid-template-columns: 1fr 70px 1fr }
  }
`)

/** Two streams and a button. A stream is not opened again, so that the page shows when it ended. */
const script = new Markup(`
  const at = () => new Date().toTimeString().slice(0, 8)
  const show = (id, state, text) => {
    const line = document.getElementById(id)
    line.querySelector('.state').className = 'state ' + state
    line.querySelector('.state').textContent = state
    line.querySelector('.text').textContent = text
  }
  let leaving = false
  addEventListener('pagehide', () => { leaving = true })

  async function onClosed(id) {
    if (leaving) return
    show(id, 'closed', 'closed at ' + at())
    const response = await fetch('/api/me').catch(() => undefined)
    if (leaving || document.getElementById('ended').hidden === false) return
    if (response && response.status === 401) document.getElementById('ended').hidden = false
  }

  const socket = new WebSocket((location.protocol === 'https:' ? 'wss://' : 'ws://') + location.host + '/ws')
  socket.onmessage = ({ data }) => show('socket', 'open', data)
  socket.onclose = () => onClosed('socket')

  const events = new EventSource('/events')
  events.onmessage = ({ data }) => show('events', 'open', data)
  events.onerror = () => { events.close(); onClosed('events') }

  document.getElementById('call').onclick = async () => {
    const response = await fetch('/api/me').catch(() => undefined)
    const result = document.getElementById('response')
    result.hidden = false
    result.textContent = response ? response.status + ' ' + response.statusText + '\\n' + (await response.text()) : 'no response'
  }
`)

/** The targets of the links on the page. */
export interface UpstreamLinks {
  /** The path prefix of the gateway's endpoints. */
  readonly reservedPrefix: string
  /** The provider's list of sessions. */
  readonly provider: URL | undefined
  /** Whether the gateway has a page with the sessions of a person. */
  readonly hasSessionsPage: boolean
}

export type HeaderPair = readonly [name: string, value: string]

/** Shows the headers of the request, and streams that stay open while the session exists. */
export function applicationPage(heading: string, headers: readonly HeaderPair[], links: UpstreamLinks): Markup {
  const identity = headers.filter(([name]) => isIdentity(name))
  const others = headers.filter(([name]) => !isIdentity(name))
  return frame(
    heading,
    links,
    html`<div id="ended" hidden>
        <b>Your session has ended.</b> <a href="${links.reservedPrefix}sign-in?return_to=/">Sign in again</a>
      </div>
      <div class="soft">${heading}</div>
      <h1>${nameIn(headers)}</h1>
      ${identity.length > 0 ? undefined : noIdentity}
      <h2>Open while the session exists</h2>
      <div class="live">
        ${stream('socket', 'WebSocket /ws')} ${stream('events', 'Server-sent events /events')}
        <span>JSON /api/me</span><button id="call">Call</button><span class="soft">from the page, with fetch</span>
      </div>
      <pre id="response" hidden></pre>
      <h2>Headers of the request</h2>
      <table>
        <tbody class="identity">
          ${identity.map(headerRow)}
        </tbody>
      </table>
      <details>
        <summary>${others.length} headers that are not about the person</summary>
        <table>
          ${others.map(headerRow)}
        </table>
      </details>
      <script>
        ${script}
      </script>`,
  )
}

const noIdentity = html`<p>
  This request has no identity header: it did not pass through the gateway, or the gateway sets none.
</p>`

function stream(id: string, label: string): Markup {
  return html`<div id="${id}" style="display: contents">
    <span>${label}</span><span class="state">…</span><span class="text">connecting</span>
  </div>`
}

export function plainPage(heading: string, text: string, links: UpstreamLinks): Markup {
  return frame(
    heading,
    links,
    html`<h1>${heading}</h1>
      <p>${text}</p>`,
  )
}

function frame(title: string, links: UpstreamLinks, main: Markup): Markup {
  const own = links.hasSessionsPage ? html`<a href="${links.reservedPrefix}sessions">Your sessions</a>` : undefined
  const sessions = links.provider && html`<a href="${links.provider.href}" target="_blank">Sessions at the provider</a>`
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title} · Stock Ledger</title>
        <style>
          ${style}
        </style>
      </head>
      <body>
        <div class="window">
          <header class="title">
            <b>Stock Ledger 4.2</b><span>an application without OpenID Connect</span>
            <a href="${links.reservedPrefix}sign-out">Sign out</a>
          </header>
          <nav>
            <a href="/">Home</a><a href="/admin/">Administration</a><a href="/static/about.txt">About (public)</a>
            <a href="/logout">The application’s own logout</a>${own}${sessions}
          </nav>
          <main>${main}</main>
        </div>
      </body>
    </html> `
}

/** Whether a header is an identity header: `X-…`, except headers about the connection. */
function isIdentity(name: string): boolean {
  return /^x-(?!forwarded|real-ip|request-id|requested-with)/i.test(name)
}

function nameIn(headers: readonly HeaderPair[]): string {
  const valueOf = (wanted: string) => headers.find(([name]) => name.toLowerCase() === wanted)?.[1]
  return valueOf('x-name') ?? valueOf('x-remote-user') ?? 'Nobody'
}

function headerRow([name, value]: HeaderPair): Markup {
  const decoded = percentDecoded(value)
  const hint =
    decoded !== undefined && isIdentity(name) ? html`<br /><span class="soft">= ${decoded}</span>` : undefined
  return html`<tr>
    <th>${name}</th>
    <td>${value}${hint}</td>
  </tr> `
}

function percentDecoded(value: string): string | undefined {
  try {
    const decoded = decodeURIComponent(value)
    return decoded === value ? undefined : decoded
  } catch {
    return undefined
  }
}
