import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chooseLanguage, chooseLocale } from '../../src/pages/language.ts'
import { processorTime } from '../support/processor-time.ts'

for (const [asked, chosen, why] of [
  [undefined, 'en', 'nothing is asked for'],
  ['', 'en', 'nothing is asked for'],
  ['de', 'de', 'it is there'],
  ['DE-at', 'de', 'case makes no difference, and a region is left away'],
  ['zh-Hant-TW, ja', 'ja', 'the first one is not there, whatever is left away'],
  ['fr;q=0.5, de;q=0.9, ja;q=0.1', 'de', 'the weight decides'],
  ['fr;q=0.5,de;q=0.5', 'fr', 'of the same weight the first one counts'],
  ['nl, fr;q=0.001', 'fr', 'a little is more than nothing'],
  ['de;q=0, fr;q=0.1', 'fr', 'weight 0 is what the person does not want'],
  ['de;q=0, de-AT', 'en', 'what is not wanted is not found by leaving away either'],
  ['*, fr;q=0.5', 'fr', '"*" does not say which one (RFC 4647 §3.4)'],
  ['*', 'en', '"*" alone is the default'],
  ['de-x-fr', 'de', 'a single letter goes with what stands behind it'],
  ['x-de, fr', 'fr', 'a private tag has no language in it'],
  ['i-default', 'en', 'nor has this one'],
  ['de;q=2, fr', 'fr', 'a weight is 1 at most'],
  ['de;q=0.1234, fr', 'fr', 'and has three digits at most'],
  ['de;level=1, fr', 'fr', 'there are no other parameters'],
  ['de ; Q=0.8 , ja ;q=0.9', 'ja', 'space may stand there, and Q be large'],
  ['e n, "de", d€, ,;,;q=1, fr', 'fr', 'what is malformed does not count'],
] as const)
  test(`${JSON.stringify(asked)} is ${chosen}: ${why}`, () => {
    assert.equal(chooseLanguage(asked, 'en'), chosen)
  })

test('An Accept-Language field of the largest size is parsed quickly', () => {
  const asked = `${'de-a-b-c-d-e-f;q=0.1,'.repeat(1500)}fr`
  const busy = processorTime()

  assert.equal(chooseLanguage(asked, 'en'), 'fr')
  assert.ok(busy() < 200)
})

for (const [asked, locale, why] of [
  ['en-GB,en;q=0.9', 'en-gb', 'it has a region'],
  ['en,en-GB;q=0.9', 'en', 'its weight decides'],
  ['de-AT, en-GB;q=0.5', 'en-gb', 'it is of the language of the page'],
  ['en-GB;q=0, en-US', 'en-us', 'weight 0 is what the person does not want'],
  ['en-Latn-CA', 'en-latn-ca', 'it has a script'],
  ['en-u-nu-arab, en-x-private', 'en', 'other subtags do not count'],
  [undefined, 'en', 'nothing is asked for'],
] as const)
  test(`Dates for ${JSON.stringify(asked)} in a page in English are those of ${locale}: ${why}`, () => {
    assert.equal(chooseLocale(asked, 'en'), locale)
    assert.ok(new Intl.DateTimeFormat(locale).format(0))
  })
