import type { ListedSession, SessionList } from '../core/session-lists.ts'
import type { ApplicationSignInMessages, SessionListMessages } from './messages/messages.ts'
import { breakable, escape, hiddenHtml } from './page.ts'

export interface ListForms {
  /** The path that ends sessions. */
  readonly end: string
  /** The path that signs out. */
  readonly signOut: string
  /** Hidden fields of the forms that end sessions. */
  readonly fields: Readonly<Record<string, string>>
}

interface Words {
  /** For dates, such as `en-GB`. */
  readonly locale: string
  readonly texts: SessionListMessages
  /** The text of the button that signs out. */
  readonly signOut: string
}

/**
 * The HTML of a list of sessions. Each has a heading, what is known about it, and a button whose
 * name says which session it ends. On the page of a signed-in person, the main action ends all
 * other sessions, so its button is filled.
 */
export function sessionListHtml({ sessions, othersToken, hasMore }: SessionList, forms: ListForms, words: Words) {
  const { texts } = words
  const hasOthers = sessions.some(({ isCurrent }) => !isCurrent)
  const isOwnPage = sessions.some(({ isCurrent }) => isCurrent)
  const endOthers = { text: texts.endOthers, kind: isOwnPage ? 'danger' : 'second danger' }
  return [
    '<ul class="sessions">',
    ...sessions.map((session, index) => itemHtml(session, index, forms, words)),
    '</ul>',
    ...(hasMore ? [`<p>${escape(texts.more)}</p>`] : []),
    ...(hasOthers ? [formHtml(forms.end, { ...forms.fields, session: othersToken }, endOthers)] : []),
  ].join('\n')
}

/** An application for which a password is kept. */
export interface ShownSecret {
  /** Its name in the form that removes the password. */
  readonly upstream: string
  readonly title: string
  /** Names the person in that form. */
  readonly person: string
}

/** The HTML of the passwords that a person has entered, each with a button that removes it. */
export function secretListHtml(
  secrets: readonly ShownSecret[],
  action: string,
  texts: ApplicationSignInMessages,
): string {
  if (secrets.length === 0) return ''
  const items = secrets.map(({ upstream, title, person }) => {
    const label = texts.removeNamed.replace('{to}', () => title)
    const button = { text: texts.remove, kind: 'second danger', label }
    return `<li><p>${breakable(escape(title))}</p>${formHtml(action, { upstream, person, remove: '1' }, button)}</li>`
  })
  return `\n<h2>${escape(texts.kept)}</h2>\n<ul class="sessions">\n${items.join('\n')}\n</ul>`
}

/**
 * The HTML of a form in which a person enters a password. A name that is known is in a field too,
 * which password managers look for.
 */
export function signInFormHtml({
  action,
  fields,
  labels,
  known,
  send,
}: {
  readonly action: string
  readonly fields: Readonly<Record<string, string>>
  readonly labels: { readonly username: string; readonly password: string }
  readonly known: string | undefined
  readonly send: string
}): string {
  const entered = (['username', 'password'] as const).map((name) => {
    const isPassword = name === 'password'
    const [type, autocomplete] = isPassword ? ['password', 'current-password'] : ['text', 'username']
    const state = isPassword || known === undefined ? 'maxlength="1024" required' : `value="${escape(known)}" readonly`
    return `<p><label for="${name}">${escape(labels[name])}</label><input id="${name}" name="${name}" type="${type}" autocomplete="${autocomplete}" ${state}></p>`
  })
  return formHtml(action, fields, { text: send, kind: 'first' }, entered.join(''))
}

function itemHtml(session: ListedSession, index: number, forms: ListForms, words: Words): string {
  const { texts, signOut } = words
  const name = browserNameOf(session, texts)
  const about = `about-${index}`
  const form = session.isCurrent
    ? formHtml(forms.signOut, {}, { text: signOut, kind: 'second' })
    : formHtml(
        forms.end,
        { ...forms.fields, session: session.token },
        { text: texts.end, kind: 'second danger', label: texts.endNamed.replace('{browser}', () => name), about },
      )
  const badge = session.isCurrent ? ` <span class="badge">${escape(texts.current)}</span>` : ''
  return `<li><h2>${escape(name)}${badge}</h2>${factsHtml(factsOf(session, words), about)}${form}</li>`
}

function browserNameOf({ browser }: ListedSession, texts: SessionListMessages): string {
  if (browser === undefined) return texts.unknownBrowser
  const { name, system } = browser
  if (system === undefined) return name
  return texts.browserOn.replace('{browser}', () => name).replace('{system}', () => system)
}

/** Terms and their values in HTML. */
export function factsHtml(facts: readonly (readonly [term: string, html: string])[], id: string): string {
  return `<dl id="${id}">${facts.map(([term, html]) => `<dt>${escape(term)}</dt><dd>${html}</dd>`).join('')}</dl>`
}

function factsOf({ signedInAt, lastUsedAt, address, isBound }: ListedSession, { locale, texts }: Words) {
  return [
    [texts.signedInAt, timeHtml(signedInAt, locale)],
    ...(lastUsedAt === undefined ? [] : [[texts.lastUsedAt, timeHtml(lastUsedAt, locale)] as const]),
    ...(address === undefined ? [] : [[texts.address, breakable(escape(address))] as const]),
    ...(isBound ? [[texts.protection, escape(texts.bound)] as const] : []),
  ] as const
}

/** The gateway does not know the time zone of the person, so the text says UTC. */
export function timeHtml(time: number, locale: string): string {
  const format = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' })
  return `<time datetime="${new Date(time).toISOString()}">${escape(format.format(time))} UTC</time>`
}

interface Button {
  readonly text: string
  /** Its classes. */
  readonly kind: string
  /** Its name, if that is not its text. */
  readonly label?: string
  /** The id of its description. */
  readonly about?: string
}

export function formHtml(
  action: string,
  fields: Readonly<Record<string, string>>,
  { text, kind, label, about }: Button,
  entered = '',
): string {
  const name = label === undefined ? '' : ` aria-label="${escape(label)}"`
  const description = about === undefined ? '' : ` aria-describedby="${about}"`
  const button = `<button class="${kind}" type="submit"${name}${description}>${escape(text)}</button>`
  return `<form method="post" action="${escape(action)}">${hiddenHtml(fields)}${entered}${button}</form>`
}
