import { html, Markup } from './html.ts'
import { fullName, type DemoPerson } from './people.ts'

/** Headers that allow only the page itself and its inline style. */
export const pageHeaders = {
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

const style = new Markup(`
  :root { color-scheme: light dark; --page: #f3f5f8; --card: #fff; --ink: #1c2733; --soft: #5b6b7b; --line: #dde3ea; --accent: #1f5fa8;
    --tint: #eef4fb; --badge: #dbe8f6; --danger: #a83220 }
  @media (prefers-color-scheme: dark) {
    :root { --page: #14181e; --card: #1d232b; --ink: #e4e7ee; --soft: #a3afbd; --line: #39424e; --accent: #8ab4f8;
      --tint: #263242; --badge: #24405f; --danger: #ff8f85 }
  }
  * { box-sizing: border-box }
  body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif }
  header { background: var(--card); border-bottom: 1px solid var(--line); padding: 16px max(32px, calc(50% - 398px)); display: flex;
    flex-wrap: wrap; gap: 0 12px; align-items: baseline }
  header b { font-size: 18px }
  header span, .soft { color: var(--soft) }
  main { max-width: 860px; margin: 40px auto; padding: 0 32px }
  h1 { font-size: 28px; line-height: 1.25; margin: 0 0 8px; font-weight: 600 }
  h2 { font-size: 17px; margin: 40px 0 12px; font-weight: 600 }
  p { margin: 0 0 24px }
  ul { list-style: none; margin: 0; padding: 0; display: grid; gap: 12px }
  ul.people { grid-template-columns: repeat(auto-fill, minmax(min(340px, 100%), 1fr)) }
  li, .empty { background: var(--card); border: 1px solid var(--line); border-radius: 10px }
  li.row { display: flex; flex-wrap: wrap; align-items: center; gap: 16px; padding: 14px 18px }
  li.row div { flex: 1 1 180px; min-width: 0 }
  .empty { padding: 28px; text-align: center; color: var(--soft) }
  button { font: inherit; cursor: pointer; color: var(--ink) }
  button.person { width: 100%; display: flex; gap: 16px; align-items: center; text-align: left; padding: 16px 18px;
    background: none; border: 0; border-radius: 10px }
  button.person:hover, button.person:focus-visible { background: var(--tint); outline: 2px solid var(--accent) }
  li.row button { background: none; border: 1px solid; border-radius: 7px; padding: 7px 14px; white-space: nowrap }
  li.row button:hover { background: var(--tint) }
  button.end { color: var(--danger) }
  button.plain { background: none; border: 0; padding: 0; color: var(--accent); text-decoration: underline }
  .initials { flex: none; width: 46px; height: 46px; border-radius: 50%; background: var(--badge); color: var(--ink); font-weight: 600;
    display: grid; place-items: center }
  strong { display: block; font-weight: 600 }
  small { display: block; color: var(--soft); font-size: 14px; overflow-wrap: anywhere }
  code { font: 14px 'DejaVu Sans Mono', ui-monospace, monospace }
  table { width: 100%; border-collapse: collapse; font-size: 14px }
  td { padding: 8px 18px 8px 0; border-top: 1px solid var(--line) }
`)

function page(title: string, main: Markup, head?: Markup): Markup {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title}</title>
        ${head}
        <style>
          ${style}
        </style>
      </head>
      <body>
        <header><b>Demo sign-in service</b><span>an OpenID Provider for tests and demonstrations</span></header>
        <main>${main}</main>
      </body>
    </html> `
}

/** The page where the browser chooses a person. The form is posted to `action`. */
export function peoplePage(people: readonly DemoPerson[], action: string, client_id: string): Markup {
  return page(
    'Sign in',
    html`<h1>Who are you today?</h1>
      <p class="soft">Choose a person to sign in to <b>${client_id}</b>. There are no passwords here.</p>
      <form method="post" action="${action}">
        <ul class="people">
          ${people.map((person) => html`<li>${personButton(person)}</li> `)}
        </ul>
        <p><br /><button class="plain" name="cancel" value="yes">Cancel and go back</button></p>
      </form>`,
  )
}

function personButton(person: DemoPerson): Markup {
  const groups = person.fields.groups.length > 0 ? person.fields.groups.join(', ') : 'no groups'
  return html`<button class="person" name="person" value="${person.sub}">
    ${initials(fullName(person))}
    <span><strong>${fullName(person)}</strong><small>${person.email}</small><small>${groups}</small></span>
  </button>`
}

function initials(name: string): Markup {
  const letters = name.split(' ').map((word) => [...word][0] ?? '')
  return html`<span class="initials">${letters.join('')}</span>`
}

export interface SessionRow {
  readonly sid: string
  readonly sub: string
  readonly name: string
  readonly since: Date
}

export interface EndingRow {
  readonly name: string
  readonly at: Date
  /** One sentence: who ended the session, and the result. */
  readonly how: string
}

/**
 * The page with all sessions, what can be done about them, and the sessions that ended recently.
 */
export function sessionsPage(
  sessions: readonly SessionRow[],
  disabled: readonly DemoPerson[],
  endings: readonly EndingRow[],
): Markup {
  const list =
    sessions.length > 0
      ? html`<ul>
          ${sessions.map(sessionItem)}
        </ul>`
      : noSessions
  return page(
    'Sessions',
    html`<h1>Sessions</h1>
      <p class="soft">
        Who is signed in at this provider. Ending a session here works as if an administrator ended it: the provider
        sends a Logout Token to the application (back-channel logout). Disabling an account ends all sessions of the
        person: the provider sends a security event (Shared Signals Framework).
      </p>
      ${list} ${disabled.length > 0 ? disabledAccounts(disabled) : undefined}
      ${endings.length > 0 ? endingsTable(endings) : undefined}`,
    html`<meta http-equiv="refresh" content="5" />`,
  )
}

const noSessions = html`<div class="empty">Nobody is signed in.</div>`

function sessionItem(session: SessionRow): Markup {
  return html`<li class="row">
    ${initials(session.name)}
    <div>
      <strong>${session.name}</strong>
      <small>since ${clockTime(session.since)}, sid <code>${session.sid}</code></small>
    </div>
    <form method="post" action="/sessions/end">
      <button class="end" name="sid" value="${session.sid}">End this session</button>
    </form>
    <form method="post" action="/accounts/disable">
      <button class="end" name="person" value="${session.sub}">Disable this account</button>
    </form>
  </li> `
}

function disabledAccounts(people: readonly DemoPerson[]): Markup {
  return html`<h2>Disabled accounts</h2>
    <ul>
      ${people.map(
        (person) =>
          html`<li class="row">
            ${initials(fullName(person))}
            <div><strong>${fullName(person)}</strong></div>
            <form method="post" action="/accounts/enable">
              <button name="person" value="${person.sub}">Enable again</button>
            </form>
          </li> `,
      )}
    </ul>`
}

function endingsTable(endings: readonly EndingRow[]): Markup {
  return html`<h2>Ended recently</h2>
    <table>
      ${endings.map(
        ({ name, at, how }) =>
          html`<tr>
            <td>${clockTime(at)}</td>
            <td>${name}</td>
            <td>${how}</td>
          </tr> `,
      )}
    </table>`
}

function clockTime(at: Date): string {
  return at.toTimeString().slice(0, 8)
}

/** A page with a message only. */
export function messagePage(title: string, text: string): Markup {
  return page(
    title,
    html`<h1>${title}</h1>
      <p class="soft">${text}</p>`,
  )
}
