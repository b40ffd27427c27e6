import { randomBytes } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Setting } from '../document/report.ts'
import { namedFile } from '../document/secrets.ts'
import type { DeviceBindingConfig, SessionConfig, SessionCookieConfig, StoreConfig } from '../model/session.ts'
import type { SessionSettings, SessionStoreSettings } from '../settings.ts'
import { buildRedis } from './redis.ts'

const keyBytes = 32

/** `secure`: browsers reach the gateway over https. */
export function buildSession(settings: SessionSettings, at: Setting, secure: boolean): SessionConfig {
  const store = buildStore(settings.store, at.below('store'))
  const { maxPerPerson } = settings
  return {
    ...settings,
    // The memory store is lost with the process, so a new key for each start is sufficient.
    keys: settings.keys ?? (store.kind === 'memory' ? [randomBytes(keyBytes)] : []),
    isKeyGenerated: settings.keys === undefined && store.kind === 'memory',
    store,
    maxPerPerson: maxPerPerson?.count === undefined ? undefined : { ...maxPerPerson, count: maxPerPerson.count },
    cookie: buildCookie(settings.cookie, secure),
    deviceBinding: buildDeviceBinding(settings, secure),
  }
}

function buildDeviceBinding(settings: SessionSettings, secure: boolean): DeviceBindingConfig {
  const { mode, ...others } = settings.deviceBinding
  const isOfDomain = settings.cookie.domain !== undefined
  return { ...others, isOn: mode !== 'off' && secure && !isOfDomain, isRequired: mode === 'required' }
}

function buildCookie({ name, domain, sameSite }: SessionSettings['cookie'], secure: boolean): SessionCookieConfig {
  // Browsers accept a cookie with the prefix __Host- only with Secure and from this host, so that
  // no sibling site can set one (RFC 6265bis §4.1.3.2). With a domain, only __Secure- is possible.
  const prefix = domain === undefined ? '__Host-' : '__Secure-'
  return { name: secure ? `${prefix}${name}` : name, ...(domain !== undefined && { domain }), secure, sameSite }
}

function buildStore({ memory, file, redis }: SessionStoreSettings, at: Setting): StoreConfig {
  if (file !== undefined) {
    const path = resolve(namedFile(file, at.below('file')))
    if (file.endsWith('/') || statSync(path, { throwIfNoEntry: false })?.isDirectory() === true)
      at.below('file').error('is a folder', `name a file in it: ${path}/sessions.db`)
    else if (!existsSync(dirname(path)) && !isMadeByService(dirname(path)) && !at.report.isBeforeStart)
      at.below('file').warning(
        `is in a folder that does not exist: ${dirname(path)}`,
        'create it for the user that the gateway runs as: the gateway does not start without it',
      )
    return { kind: 'file', file: path }
  }
  if (redis !== undefined) return buildRedis(redis, at.below('redis'))
  return { kind: 'memory', maxSessions: memory?.maxSessions ?? 0 }
}

/** The state folder of a service, which systemd or a volume provides at the start. */
function isMadeByService(folder: string): boolean {
  return /^\/var\/lib\/[^/]+$/.test(folder)
}
