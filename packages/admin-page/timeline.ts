import { type EndedBy, escape, type Overview, type TimelineEvent } from '../../src/entries/admin-page.ts'
import { age, count, identifier, idOf, table, time, type Row } from './html.ts'

const heads = ['Time', 'What', '~Names', 'Result', '~Ended on', '~Request']

export function timelineHtml({ timeline, at, processes, isShared }: Overview): string {
  if (timeline.length === 0) return `<p>Nothing since ${time(processes.countingSince)}.</p>`
  const rows = timeline.map((event) => eventRow(event, at, isShared))
  return table('timeline', `Since ${time(processes.countingSince)}, the latest first`, heads, rows)
}

function eventRow(event: TimelineEvent, at: number, isShared: boolean): Row {
  const { request } = event
  const id = idOf('event', event.at, event.kind, request ?? event.sub ?? '')
  const cells = [
    `${time(event.at)}, <br>${age(event.at, at)}`,
    whatHtml(event),
    namesHtml(event),
    resultHtml(event),
    reachHtml(event, id, isShared),
    request === undefined ? 'none' : identifier('request ID', request),
  ]
  return { id, cells }
}

function namesHtml({ kind, outcome, sid, sub }: TimelineEvent): string {
  const names = [
    ...(sid === undefined ? [] : [`sid ${identifier('sid', sid)}`]),
    ...(sub === undefined ? [] : [`sub ${identifier('sub', sub)}`]),
  ]
  if (names.length > 0) return names.join('<br>')
  if (kind === 'end') return 'not known'
  if (outcome === 'refused' || outcome === 'not_now') return 'not verified'
  // A signal that has an effect has one of three names. Audit events do not contain the third.
  return outcome === 'ignored' ? 'not read' : 'an e-mail address'
}

/** The values of `by` in the audit event `session.ended`. */
const causes: Readonly<Record<EndedBy, string>> = {
  provider: 'Logout Token, carried out later',
  provider_frame: 'front-channel frame',
  signal: 'signal',
  person: 'the person signed out',
  administrator: 'an administrator',
  new_sign_in: 'a new sign-in in the same browser',
  max_per_person: 'a new sign-in in another browser, beyond max_per_person',
  invalid_grant: 'the provider rejected the refresh token',
  invalid_tokens: 'the refreshed tokens were invalid',
  userinfo_401: 'the provider rejected the access token',
  session_expiry: 'the session ended at the provider (session_expiry)',
  misuse: 'misuse of a sign-in',
  earlier_order: 'an earlier logout of the person that did not find the session',
}

function whatHtml({ kind, by = '', signal }: TimelineEvent): string {
  if (kind === 'end') return escape(Object.hasOwn(causes, by) ? causes[by as EndedBy] : by.replaceAll('_', ' '))
  if (kind === 'signal') return signal === undefined ? 'signal' : `signal<br>${escape(signal)}`
  return kind === 'frame' ? 'front-channel frame' : 'Logout Token'
}

function resultHtml({ kind, outcome, matched = 0, reason = '' }: TimelineEvent): string {
  const sessions = count(matched, 'session', 'sessions')
  return {
    obeyed: matched === 0 ? 'matched no session' : kind === 'signal' ? `matched ${sessions}` : `ended ${sessions}`,
    replayed: 'repeated: it had an effect before',
    ignored: `no effect: ${escape(reason)}`,
    refused: `<strong>refused</strong>: ${escape(reason)}`,
    not_now: `<strong>not carried out</strong>, the provider must send it again: ${escape(reason)}`,
  }[outcome]
}

function reachHtml({ reach, matched = 0 }: TimelineEvent, id: string, isShared: boolean): string {
  if (reach === undefined) return matched > 0 && !isShared ? 'this process' : ''
  const { confirmed, missing, absent } = reach
  const slowest = confirmed.at(-1)?.ms ?? 0
  const names = confirmed.map(({ process, ms }) => `<li>${escape(process)}: ${milliseconds(ms)}</li>`)
  const known = absent.map((process) => `<li>${escape(process)}: <strong>not confirmed</strong></li>`)
  return [
    ...(missing === 0 ? [] : [`<strong>${count(missing, 'process has', 'processes have')} not confirmed</strong><br>`]),
    `<details id="${escape(id)}-reach"><summary>${count(confirmed.length, 'process', 'processes')} in ${milliseconds(slowest)}</summary>`,
    `<ul>${names.join('')}${known.join('')}</ul></details>`,
  ].join('')
}

function milliseconds(ms: number): string {
  return ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`
}
