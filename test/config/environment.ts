const key = Buffer.from(Array.from({ length: 32 }, (_, index) => 255 - index * 3))

/** The environment that the configurations of these tests are read in. */
export const environment: Readonly<Record<string, string>> = {
  CLIENT_SECRET: 'a client secret of the tests',
  STAFF_SECRET: 'a secret of staff in the tests',
  PARTNERS_SECRET: 'a secret of partners in the tests',
  SHORT_SECRET: 'swordfish',
  QUOTED_SECRET: '"a client secret in quotes"',
  BLANK_SECRET: ' a client secret with a blank ',
  WIKI_TOKEN: 'a wiki token of the tests',
  LONG_PASSWORD: 'x'.repeat(513),
  PHPMYADMIN_PASSWORD: 'a phpMyAdmin password of the tests',
  PROXY_PASSWORD: 'a proxy password of the tests',
  REDIS_PASSWORD: 'a redis password of the tests',
  SESSION_KEY: key.toString('base64'),
  SESSION_KEY_HEX: key.toString('hex').toUpperCase(),
  SESSION_KEY_URL: `${Buffer.alloc(32, 0xfb).toString('base64url')}\n`,
  SHORT_KEY: Buffer.from('sixteen bytes...').toString('base64'),
  PASSPHRASE: 'correct horse battery staple',
  SIGNALS_AUTHORIZATION: 'Bearer a token for the transmitter of the tests',
  UMLAUT_SECRET: 'Bearer Schlüssel of the tests',
  EMPTY: '',
}

/**
 * What no diagnostic may show. `hunter2` is what people write into a file although they should not.
 */
export const secretTexts: readonly string[] = [
  'hunter2',
  'the client secret of the tests',
  ...Object.values(environment).filter((value) => value !== ''),
]
