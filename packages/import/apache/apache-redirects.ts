import { ownMember } from '../../../src/entries/import.ts'
import type { Notes } from '../common/notes.ts'
import { denyingRule, type Rule } from '../common/written-config.ts'
import type { Directive } from './apache-file.ts'
import { patternsOf } from './apache-sections.ts'

/** What a directive does with the requests for some paths. */
interface Answer {
  readonly shown: string
  /** `undefined`: rules cannot express its paths. */
  readonly patterns: readonly string[] | undefined
  /** The target of a redirect. Absent: Apache refuses the requests. */
  readonly to?: string
  readonly status?: number
  /** It depends on conditions, which are not translated. */
  readonly isConditional?: boolean
}

/**
 * The rules for requests to which Apache itself responds. Where a redirect cannot be translated,
 * its paths deny all people.
 * @param isHttps people reach the gateway with https only
 * @param origins the targets of ProxyPass
 */
export function redirectRules(
  directives: readonly Directive[],
  { isHttps, origins }: { readonly isHttps: boolean; readonly origins: readonly string[] },
  from: Notes,
): readonly Rule[] {
  const isRewriting = !/^off$/i.test(directives.findLast(({ name }) => name === 'rewriteengine')?.args[0] ?? '')
  let conditions: (readonly string[])[] = []
  return directives.flatMap(({ name, written, args }): readonly Rule[] => {
    if (name === 'rewritecond') conditions.push(args)
    if (name === 'rewriterule') {
      const own = conditions
      conditions = []
      const answer = isRewriting ? readRewrite(args, own, { isHttps, origins }, from) : undefined
      return answer === undefined ? [] : rulesFor(answer, from)
    }
    return /^redirect(?:match|permanent|temp)?$/.test(name) ? rulesFor(readRedirect(name, written, args), from) : []
  })
}

/** A URL or a path without variables; with `*` at its end, it has no query. */
const isTarget = /^(?:https?:\/\/|\/(?!\/))[^\s$%*?#]*(?:\*|[?#][^\s$%*]*)?$/

function rulesFor({ shown, patterns, to, status = 302, isConditional = false }: Answer, from: Notes): readonly Rule[] {
  if (patterns === undefined) {
    from.deny(shown, 'rules use paths, not regular expressions, and it refuses requests or leads them elsewhere')
    return []
  }
  if (to === undefined || isConditional || !isTarget.test(to) || ![301, 302, 303, 307, 308].includes(status)) {
    if (to !== undefined)
      from.decide(
        shown,
        'this redirect is not translated; until you write it as respond: { to: … }, its paths deny all people',
      )
    else if (isConditional)
      from.changed(shown, 'its conditions are not translated: the paths deny all people, whatever the request has')
    return patterns.map((path) => denyingRule(path, `Apache answers with ${shown}.`))
  }
  return patterns.map((path) => ({ path, access: 'public', respond: { to, status } }))
}

const statuses: Readonly<Record<string, number>> = { permanent: 301, temp: 302, seeother: 303, gone: 410 }

/** `Redirect [STATUS] PATH [URL]`, `RedirectMatch [STATUS] EXPRESSION [URL]`. */
function readRedirect(name: string, written: string, args: readonly string[]): Answer {
  const shown = `${written} ${args.join(' ')}`
  const isMatch = name === 'redirectmatch'
  const fixed = { redirectpermanent: 301, redirecttemp: 302 }[name]
  const given =
    fixed ??
    ownMember(statuses, args[0]?.toLowerCase() ?? '') ??
    (/^\d{3}$/.test(args[0] ?? '') ? Number(args[0]) : undefined)
  const [path = '', url] = given === undefined || fixed !== undefined ? args : args.slice(1)
  const status = given ?? 302
  const isPlain = /^(?:\/[\w.~-]+)*\/?$/.test(path) && path !== ''
  const patterns = isMatch ? patternsOf(path) : isPlain ? [`${path.replace(/\/$/, '')}/*`] : undefined
  if (status < 300 || status > 399 || url === undefined) return { shown, patterns }
  if (isMatch) return { shown, status, ...targetOf(path, patterns, url) }
  // Redirect keeps the rest of the path.
  return { shown, patterns, status, to: `${url.replace(/\/$/, '')}/*` }
}

/** A redirect by an expression. `^/old/(.*)` and `/new/$1` are `/old/*` and `/new/*`. */
function targetOf(
  expression: string,
  patterns: Answer['patterns'],
  url: string,
): Pick<Answer, 'patterns'> & { to: string } {
  const [folder] = patterns ?? []
  if (folder === undefined || !/\/\(\.\*\)\$?$/.test(expression) || !url.endsWith('/$1')) return { patterns, to: url }
  return { patterns: [`${folder.replace(/\/\*?$/, '')}/*`], to: `${url.slice(0, -2)}*` }
}

function readRewrite(
  [expression = '', target = '', flags = '']: readonly string[],
  conditions: readonly (readonly string[])[],
  { isHttps, origins }: { readonly isHttps: boolean; readonly origins: readonly string[] },
  from: Notes,
): Answer | undefined {
  const shown = `RewriteRule ${expression} ${target} ${flags}`.trim()
  const has = (flag: string) => new RegExp(`[[,]\\s*(?:${flag})\\s*[\\],]`, 'i').test(flags)
  const patterns = expression.startsWith('!') ? undefined : patternsOf(expression.replace(/^\^\/\?/, '^/'))
  const isConditional = conditions.length > 0
  if (has('F|forbidden|G|gone|R=[45]\\d\\d|redirect=[45]\\d\\d')) return { shown, patterns, isConditional }
  // It changes variables only, or ends the rewriting.
  if (target === '-') return undefined
  const redirect = /[[,]\s*(?:R|redirect)(?:=(\w+))?\s*[\],]/i.exec(flags)
  if (redirect !== null || (/^https?:/.test(target) && !has('P|proxy'))) {
    if (isHttps && /^https:\/\/%\{(?:HTTP_HOST|SERVER_NAME)\}/.test(target) && isAboutHttp(conditions)) {
      from.unneeded(shown, 'external_url is https; let the proxy that terminates TLS redirect from http')
      return undefined
    }
    const code = redirect?.[1]?.toLowerCase() ?? '302'
    return {
      shown,
      isConditional,
      ...targetOf(expression, patterns, target),
      status: ownMember(statuses, code) ?? Number(code),
    }
  }
  const isWhole = /^\^?\/\??\(\.\*\)\$?$/.test(expression)
  if (has('P|proxy') && isWhole && isSameTarget(target, origins)) {
    from.unneeded(shown, 'WebSockets are proxied')
    return undefined
  }
  from.deny(shown, 'it may change where requests go, or refuse them; write it as rules or as an upstream')
  return undefined
}

/** Whether conditions are met by requests with http only. */
function isAboutHttp(conditions: readonly (readonly string[])[]): boolean {
  return conditions.some(([text = '', value = '']) =>
    /^%\{HTTPS\}$/i.test(text)
      ? /^(?:!=?on|=?off)$/i.test(value)
      : (/^%\{SERVER_PORT\}$/i.test(text) && /^(?:\^?80\$?|!\^?443\$?)$/.test(value)) ||
        (/^%\{HTTP:X-Forwarded-Proto\}$/i.test(text) && /^(?:!=?https|=?http)$/i.test(value)),
  )
}

function isSameTarget(target: string, origins: readonly string[]): boolean {
  const [, scheme = '', host = ''] = /^(wss?|https?):\/\/([^/$%]+)\/?\$1$/.exec(target) ?? []
  return host !== '' && origins.includes(`${/^(?:wss|https)$/.test(scheme) ? 'https' : 'http'}://${host}`)
}
