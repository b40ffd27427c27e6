import type { Language } from '../config/model.ts'
import { sha256 } from '../core/random.ts'
import { ownHeaders, type Response } from '../http/response.ts'

/** What a page may do. */
export interface PagePolicy {
  /** Of the contents of its `<style>` elements. */
  readonly styleHashes: readonly string[]
  /** It has images in `data:` URIs. */
  readonly images: boolean
  /** The other origins that answering its form may redirect to. Absent: it has no form. */
  readonly formGoesOnTo: readonly string[] | undefined
  /** The origins whose pages may show it in a frame, or `'self'`. Absent: none may. */
  readonly framedBy?: readonly string[]
}

/** An HTML page as a response: no script, nothing loaded from anywhere. */
export function htmlResponse(status: number, html: string, language: Language, policy: PagePolicy): Response {
  return {
    status,
    headers: {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Language': language,
      Vary: 'Accept-Language',
      'Content-Security-Policy': contentSecurityPolicy(policy),
      ...ownHeaders,
      // "no-referrer" would send the form with "Origin: null" (Fetch, "append a request Origin
      // header"), and the sign-out URL has to see that the form came from here.
      'Referrer-Policy': policy.formGoesOnTo ? 'same-origin' : 'no-referrer',
    },
    body: html,
  }
}

function contentSecurityPolicy({ styleHashes, images, formGoesOnTo, framedBy = [] }: PagePolicy): string {
  const styles = styleHashes.map((hash) => `'${hash}'`).join(' ')
  // Browsers hold the redirects that answer a form against form-action too, and sign-out goes on to
  // the provider.
  const formAction = formGoesOnTo ? ["'self'", ...formGoesOnTo].join(' ') : "'none'"
  return [
    "default-src 'none'",
    ...(styles === '' ? [] : [`style-src ${styles}`]),
    ...(images ? ['img-src data:'] : []),
    `form-action ${formAction}`,
    `frame-ancestors ${framedBy.length > 0 ? framedBy.join(' ') : "'none'"}`,
    "base-uri 'none'",
  ].join('; ')
}

/**
 * As a Content Security Policy names it: in plain base64 with its padding; 32 bytes need one "=".
 */
export function styleHash(style: string): string {
  return `sha256-${sha256(style).replaceAll('-', '+').replaceAll('_', '/')}=`
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Safe as text and inside a quoted attribute. */
export function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? '')
}
