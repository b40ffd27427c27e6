import type { KeyList, ListedKey } from '../core/session-lists.ts'
import type { KeyMessages, SessionListMessages } from './messages/messages.ts'
import { breakable, escape } from './page.ts'
import { factsHtml, formHtml, timeHtml } from './session-list.ts'

export interface ShownKeys extends KeyList {
  /** For which upstreams the person may make a key. */
  readonly upstreams: readonly { readonly name: string; readonly address: string }[]
  /** The names of those for which the person has as many keys as is allowed. */
  readonly full: readonly string[]
}

/** A new key, which is shown once. */
export interface ShownNewKey {
  readonly id: string
  readonly name: string
  /** Where programs find the upstream. */
  readonly address: string
  /** A header in which a program may send it. */
  readonly header: string | undefined
  readonly endsAt: number
}

interface Words {
  readonly locale: string
  readonly texts: KeyMessages
  readonly list: SessionListMessages
}

/**
 * The part of the page with the sessions that is about keys. Empty: the person has no use for it.
 */
export function keyListHtml(
  { keys, allToken, newToken, upstreams, full }: ShownKeys,
  prefix: string,
  words: Words,
): string {
  if (keys.length === 0 && upstreams.length === 0) return ''
  const { texts } = words
  const end = `${prefix}sessions`
  const endAll = formHtml(end, { session: allToken }, { text: texts.endAll, kind: 'second danger' })
  return [
    `<section aria-labelledby="keys"><h2 id="keys">${escape(texts.title)}</h2><p>${escape(texts.text)}</p>`,
    ...(keys.length > 0
      ? ['<ul class="sessions">', ...keys.map((key, at) => itemHtml(key, at, end, words)), '</ul>']
      : []),
    ...(keys.length > 1 ? [endAll] : []),
    ...(full.length > 0 ? [`<p>${escape(texts.full.replace('{names}', () => full.join(', ')))}</p>`] : []),
    ...(upstreams.length > 0 ? [newKeyHtml(upstreams, newToken, `${prefix}keys`, texts)] : []),
    '</section>',
  ].join('\n')
}

function itemHtml(key: ListedKey, index: number, end: string, { locale, texts, list }: Words): string {
  const { name, upstream, madeAt, endsAt, used, token } = key
  const about = `about-key-${index}`
  const label = texts.endNamed.replace('{name}', () => name)
  const form = formHtml(end, { session: token }, { text: texts.end, kind: 'second danger', label, about })
  const facts = [
    [texts.upstream, escape(upstream)],
    [texts.madeAt, timeHtml(madeAt, locale)],
    [list.lastUsedAt, used === undefined ? escape(texts.unused) : timeHtml(used.at, locale)],
    ...(used === undefined ? [] : [[list.address, breakable(escape(used.address))] as const]),
    [texts.endsAt, timeHtml(endsAt, locale)],
  ] as const
  return `<li><h3>${escape(name)}</h3>${factsHtml(facts, about)}${form}</li>`
}

function newKeyHtml(upstreams: ShownKeys['upstreams'], token: string, action: string, texts: KeyMessages): string {
  const options = upstreams.map(
    ({ name, address }) => `<option value="${escape(name)}">${escape(name)} (${escape(address)})</option>`,
  )
  return [
    `<form method="post" action="${escape(action)}"><input type="hidden" name="form" value="${escape(token)}">`,
    `<p><label for="key-name">${escape(texts.name)}</label><input id="key-name" name="name" maxlength="64" required autocomplete="off"></p>`,
    `<p><label for="key-for">${escape(texts.upstream)}</label><select id="key-for" name="upstream">${options.join('')}</select></p>`,
    `<button type="submit">${escape(texts.make)}</button></form>`,
  ].join('')
}

/** What a person copies into the program. */
export function shownKeyHtml(
  { id, name, address, header, endsAt }: ShownNewKey,
  { locale, texts }: Omit<Words, 'list'>,
) {
  const facts = [
    [texts.name, escape(name)],
    [texts.key, `<code>${escape(id)}</code>`],
    [texts.address, breakable(escape(address))],
    ...(header === undefined ? [] : [[texts.header, escape(header)] as const]),
    [texts.endsAt, timeHtml(endsAt, locale)],
  ] as const
  return factsHtml(facts, 'new-key')
}
