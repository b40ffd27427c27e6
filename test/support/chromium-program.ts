// Where the tests and the benches find Chromium, and how they start it.
import { existsSync } from 'node:fs'
import { siteDomain } from './certificates.ts'

const whole = process.env['CHROMIUM'] ?? '/usr/bin/chromium'
/** Chromium without windows, menus and extensions: it needs less than half of the CPU time. */
const shell = process.env['CHROMIUM'] ?? '/usr/bin/chromium-headless-shell'

// Chromium reads only the last `--disable-features`, which is this one instead of Playwright's.
const disabledFeatures = [
  // Both load the pop-up of the address bar into each window, with a process that costs more
  // processor time than the page.
  'WebUIOmniboxAimPopup',
  'WebUIOmniboxPopup',
  // Those that Playwright disables.
  'AimEnabled',
  'AvoidCorsURLLoaderRestartOnRedirect',
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'DestroyProfileOnBrowserClose',
  'HttpsFirstBalancedModeAutoEnable',
  'HttpsUpgrades',
  'LensOverlay',
  'MediaRouter',
  'NetworkTimeServiceQuerying',
  'OptimizationHints',
  'PaintHolding',
  'PreconnectToSearch',
  'ThirdPartyStoragePartitioning',
]

// Disables the requests that a browser sends on its own, so that every request comes from the page.
export const chromiumArguments = [
  `--disable-features=${disabledFeatures.join()}`,
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  `--host-resolver-rules=MAP *.${siteDomain} 127.0.0.1`,
]

/**
 * The path of the whole browser.
 * @throws when there is no Chromium
 */
export function chromiumPath(): string {
  return required(whole)
}

/**
 * The path of Chromium without windows, or of the whole browser where that is not installed.
 * @throws when there is no Chromium
 */
export function shellPath(): string {
  return required(existsSync(shell) ? shell : whole)
}

function required(path: string): string {
  if (existsSync(path)) return path
  throw new Error(
    `There is no Chromium at ${path}. On Debian: apt-get install chromium. Elsewhere name yours in CHROMIUM.`,
  )
}
