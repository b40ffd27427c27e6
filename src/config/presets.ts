import { stringify } from 'yaml'
import { isObject, type JsonObject } from '../core/json.ts'
import type { Report, Setting } from './document/report.ts'

/** What one application needs. */
export interface Preset {
  /** What `npm run test:applications` tries the settings with. Absent: they are untried. */
  readonly triedWith?: string
  /** What to set up in the application: the rest of a sentence that begins with "It needs". */
  readonly needs: string
  /** Settings of an upstream, as in YAML. */
  readonly settings: Readonly<Record<string, unknown>>
}

const user = { 'X-Remote-User': 'preferred_username' }
const person = { ...user, 'X-Name': '{given_name} {family_name}', 'X-Email': 'email', 'X-Groups': 'groups' }
const servlet = { session_cookies: ['JSESSIONID*'] }

/**
 * `preset` of an upstream means these settings, and nothing else. docs/applications says what
 * each application needs besides.
 */
export const presets: Readonly<Record<string, Preset>> = {
  airflow: {
    triedWith: 'Airflow 3.3 and 2.11, with the FAB provider',
    needs: 'AUTH_TYPE = AUTH_REMOTE_USER, and a security manager that reads X-Remote-User',
    settings: {
      headers: person,
      session_cookies: ['session', '_token'],
      logout: { paths: ['/api/v2/auth/logout', '/auth/logout', '/logout'] },
    },
  },
  cockpit: {
    triedWith: 'Cockpit 287 of Debian 12, as a local session',
    needs: 'a rule that admits only people who may have the rights of its user, or its own sign-in',
    settings: { session_cookies: ['cockpit', 'machine-cockpit*'] },
  },
  django: {
    triedWith: 'Django 5.2',
    needs: 'RemoteUserMiddleware with the header HTTP_X_REMOTE_USER',
    settings: {
      headers: { ...user, 'X-Groups': 'groups' },
      session_cookies: ['sessionid'],
      logout: { paths: [{ path: '/admin/logout/', methods: ['POST'] }] },
    },
  },
  dokuwiki: {
    triedWith: 'release 2022-07-31 of Debian 12',
    needs: 'an authentication plugin that reads X-Remote-User',
    settings: {
      headers: person,
      session_cookies: ['DokuWiki', 'DW*'],
      logout: { paths: [{ path: '/*', query: { do: 'logout' } }] },
    },
  },
  grafana: {
    needs:
      '[auth.proxy] with enabled = true, header_name = X-WEBAUTH-USER and headers = Name:X-WEBAUTH-NAME Email:X-WEBAUTH-EMAIL',
    settings: {
      headers: {
        'X-WEBAUTH-USER': 'preferred_username',
        'X-WEBAUTH-NAME': '{given_name} {family_name}',
        'X-WEBAUTH-EMAIL': 'email',
      },
      session_cookies: ['grafana_session'],
      logout: { paths: ['/logout'] },
    },
  },
  jenkins: {
    needs: 'the plugin Reverse Proxy Auth with its default headers X-Forwarded-User and X-Forwarded-Groups',
    settings: {
      headers: {
        'X-Forwarded-User': 'preferred_username',
        'X-Forwarded-Groups': { claim: 'groups', join: '|' },
      },
      session_cookies: ['JSESSIONID*', 'remember-me'],
      logout: { paths: ['/logout'] },
    },
  },
  jupyterhub: {
    triedWith: 'JupyterHub 6',
    needs: 'an authenticator that reads X-Remote-User',
    settings: {
      headers: { ...user, 'X-Groups': 'groups' },
      session_cookies: ['jupyterhub-*'],
      logout: { paths: ['/hub/logout'] },
    },
  },
  jupyterlab: {
    triedWith: 'JupyterLab 4',
    needs: 'an IdentityProvider that reads X-Remote-User',
    settings: {
      headers: { ...user, 'X-Name': '{given_name} {family_name}' },
      logout: { paths: ['/logout'] },
    },
  },
  mediawiki: {
    triedWith: 'MediaWiki 1.39 of Debian 12',
    needs: 'a session provider that takes the user from X-Remote-User',
    settings: {
      headers: person,
      session_cookies: ['*_session', '*UserID', '*UserName', '*Token'],
      logout: {
        paths: [
          { path: '/*', query: { title: 'Special:UserLogout' } },
          '/index.php/Special:UserLogout',
          '/wiki/Special:UserLogout',
        ],
      },
    },
  },
  nexus: {
    needs: 'the capability Rut Auth with the header X-Remote-User',
    settings: {
      headers: user,
      session_cookies: ['NXSESSIONID'],
      logout: { paths: [{ path: '/service/rapture/session', methods: ['DELETE'] }] },
    },
  },
  'node-red': {
    triedWith: 'Node-RED 4',
    needs: 'a rule that admits only people who may edit flows, because Node-RED knows no people',
    settings: { headers: user },
  },
  phpmyadmin: {
    triedWith: 'phpMyAdmin 5.2 of Debian 12',
    needs:
      "$cfg['Servers'][1]['auth_type'] = 'http', and accounts of the database with the password in PHPMYADMIN_PASSWORD",
    settings: {
      headers: {
        Authorization: { basic: { user: 'preferred_username', password: { env: 'PHPMYADMIN_PASSWORD' } } },
      },
      session_cookies: ['phpMyAdmin*', 'pmaUser*', 'pmaAuth*'],
      logout: { paths: [{ path: '/*', query: { route: '/logout' } }] },
    },
  },
  superset: {
    triedWith: 'Superset 6.1',
    needs: 'AUTH_TYPE = AUTH_REMOTE_USER, and a security manager that reads X-Remote-User',
    settings: { headers: person, session_cookies: ['session'], logout: { paths: ['/logout'] } },
  },
  tomcat: {
    triedWith: 'Tomcat 10.1 and its examples',
    needs: 'a servlet that reads X-Remote-User',
    settings: { headers: user, ...servlet },
  },
  wordpress: {
    triedWith: 'WordPress 6.1 of Debian 12',
    needs: 'a must-use plugin that takes the user from X-Remote-User',
    settings: {
      headers: person,
      session_cookies: ['wordpress_*', 'wp-postpass_*', 'comment_author_*'],
      logout: { paths: [{ path: '/wp-login.php', query: { action: 'logout' } }] },
    },
  },
}

const usual = { username: '{username}', password: '{password}' }

/** `preset` of `application_sign_in` means these settings. */
const signInPresets: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  django: { page: '/admin/login/', fields: usual },
  dokuwiki: { page: '/doku.php?do=login', action: '/doku.php', fields: { u: '{username}', p: '{password}' } },
  mediawiki: {
    page: '/index.php/Special:UserLogin',
    fields: { wpName: '{username}', wpPassword: '{password}' },
    // It shows every page to anybody, or a text in its place.
    asks: { contains: '"wgUserName":null' },
  },
  'node-red': {
    action: '/auth/token',
    json: { client_id: 'node-red-editor', grant_type: 'password', scope: '', ...usual },
    token: 'access_token',
  },
  phpmyadmin: {
    page: '/index.php?route=/',
    action: '/index.php',
    fields: { pma_username: '{username}', pma_password: '{password}' },
    success: { status: 302, cookie: 'pmaAuth*' },
  },
  // Tomcat redirects to the page that was requested, and forwards to an error page.
  tomcat: {
    fields: { j_username: '{username}', j_password: '{password}' },
    success: { status: 303 },
    refusal: { status: 200 },
  },
  transmission: { basic: true },
  wordpress: { page: '/wp-login.php', fields: { log: '{username}', pwd: '{password}' } },
}

/**
 * A document in which each upstream has the settings of its `preset`. Settings that the document
 * has itself win; of `headers` and `logout`, each key by itself. The place of a setting of a preset
 * is the line of `preset`.
 */
export function withPresets(document: object, report: Report): object {
  const { upstreams } = document as { readonly upstreams?: unknown }
  if (!isObject(upstreams)) return document
  return {
    ...document,
    upstreams: Object.fromEntries(
      Object.entries(upstreams).map(([name, upstream]) => [
        name,
        withPreset(upstream, report.at('/upstreams').below(name)),
      ]),
    ),
  }
}

function withPreset(written: unknown, at: Setting): unknown {
  if (!isObject(written)) return written
  const upstream = withSignInPreset(written, at)
  const { preset } = upstream
  // The schema reports an unknown name.
  if (typeof preset !== 'string' || !Object.hasOwn(presets, preset)) return upstream
  if (presets[preset]?.triedWith === undefined)
    at.below('preset').warning(
      'is untried: its settings come from the documentation of the application',
      'try whether another person in the same browser is shown as the previous one',
    )
  // A copy, because the validation adds defaults.
  const settings = structuredClone(presets[preset]?.settings ?? {})
  addPlaces(settings, at, at.below('preset').place)
  const merged = ['headers', 'logout'].flatMap((key) => {
    const [ours, own] = [settings[key], upstream[key]]
    return isObject(ours) && isObject(own) ? [[key, { ...ours, ...own }]] : []
  })
  return { ...settings, ...upstream, ...Object.fromEntries(merged) }
}

/** The same for the preset of a sign-in, which does not set the headers of the application. */
function withSignInPreset(upstream: JsonObject, at: Setting): JsonObject {
  const { application_sign_in: signIn } = upstream
  const preset = isObject(signIn) && typeof signIn['preset'] === 'string' ? signIn['preset'] : ''
  if (!isObject(signIn) || !Object.hasOwn(signInPresets, preset)) return upstream
  const { session_cookies, logout } = structuredClone(presets[preset]?.settings ?? {})
  const kept = { ...(session_cookies !== undefined && { session_cookies }), ...(logout !== undefined && { logout }) }
  const settings = structuredClone(signInPresets[preset] ?? {})
  const signInAt = at.below('application_sign_in')
  addPlaces(settings, signInAt, signInAt.below('preset').place)
  addPlaces(kept, at, signInAt.below('preset').place)
  return { ...kept, ...upstream, application_sign_in: { ...settings, ...signIn } }
}

/** The places of settings that the file has itself are known already. */
function addPlaces(value: unknown, at: Setting, place: Setting['place']): void {
  at.addPlace({ key: place, value: place, isList: Array.isArray(value) })
  if (typeof value !== 'object' || value === null) return
  for (const [name, member] of Object.entries(value)) addPlaces(member, at.below(name), place)
}

/** The settings that a preset means, as YAML of an upstream, below a comment about it. */
export function presetAsYaml(name: string, { triedWith, needs, settings }: Preset): string {
  const tried = triedWith === undefined ? 'untried: from its documentation' : `tried with ${triedWith}`
  return `# preset: ${name} (${tried})\n# It needs ${needs}.\n${stringify(settings, { lineWidth: 100 })}`
}
