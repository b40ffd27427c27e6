import type { Language } from '../config/model/pages.ts'
import { ownMember } from '../core/json.ts'
import { sha256 } from '../core/random.ts'
import { ownHeaders, type Response } from '../http/response.ts'

/** What the Content Security Policy of a page allows. */
export interface PagePolicy {
  /** Hashes of its `<style>` elements. */
  readonly styleHashes: readonly string[]
  /** Hashes of its `<script>` elements. Absent: it has none. */
  readonly scriptHashes?: readonly string[]
  /** Whether its scripts may send requests to its own origin. Absent: they may send none. */
  readonly connectsToSelf?: boolean
  /** Whether it may show images in `data:` URIs. */
  readonly images: boolean
  /**
   * The origins, besides its own, that the response to its form may redirect to. Absent: it has no
   * form.
   */
  readonly formTargets: readonly string[] | undefined
  /** The origins whose pages may show it in a frame, or `'self'`. Absent: none. */
  readonly framedBy?: readonly string[]
}

/** An HTML page as a response, without external content. */
export function htmlResponse(status: number, html: string, language: Language, policy: PagePolicy): Response {
  return {
    status,
    headers: {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Language': language,
      Vary: 'Accept-Language',
      'Content-Security-Policy': contentSecurityPolicy(policy),
      ...ownHeaders,
      // With "no-referrer" a browser sends the form with "Origin: null" (Fetch, "append a request
      // Origin header"). The sign-out endpoint needs the origin.
      'Referrer-Policy': policy.formTargets ? 'same-origin' : 'no-referrer',
    },
    body: html,
  }
}

function contentSecurityPolicy({
  styleHashes,
  scriptHashes = [],
  connectsToSelf = false,
  images,
  formTargets,
  framedBy = [],
}: PagePolicy): string {
  const [styles, scripts] = [styleHashes, scriptHashes].map((hashes) => hashes.map((hash) => `'${hash}'`).join(' '))
  // Browsers also check redirects after a form against form-action, and sign-out redirects to the
  // provider.
  const formAction = formTargets ? ["'self'", ...formTargets].join(' ') : "'none'"
  return [
    "default-src 'none'",
    ...(styles === '' ? [] : [`style-src ${styles}`]),
    ...(scripts === '' ? [] : [`script-src ${scripts}`]),
    ...(connectsToSelf ? ["connect-src 'self'"] : []),
    ...(images ? ['img-src data:'] : []),
    `form-action ${formAction}`,
    `frame-ancestors ${framedBy.length > 0 ? framedBy.join(' ') : "'none'"}`,
    "base-uri 'none'",
  ].join('; ')
}

/**
 * The source expression of a style or a script for a Content Security Policy: base64 with padding,
 * which is one "=" for 32 bytes.
 */
export function sourceHash(source: string): string {
  return `sha256-${sha256(source).replaceAll('-', '+').replaceAll('_', '/')}=`
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Escapes a text for HTML, also within quoted attributes. */
export function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ownMember(entities, character) ?? '')
}

/** The hidden fields of a form. */
export function hiddenHtml(fields: Readonly<Record<string, string>>): string {
  const inputs = Object.entries(fields).map(
    ([name, value]) => `<input type="hidden" name="${escape(name)}" value="${escape(value)}">`,
  )
  return inputs.join('')
}

/** Lets lines of HTML without elements break between the parts of an address, not within words. */
export function breakable(html: string): string {
  return html.replaceAll(/[@:_]|\.(?=[a-z])/gi, '$&<wbr>')
}
