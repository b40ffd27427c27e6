import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { findForm } from '../../src/application-sign-in/html-form.ts'

const names = ['u', 'p']
const inputs = '<input name=u><input type=password name=p>'
const form = (inside = '', attributes = '') => `<form method=post ${attributes}>${inputs}${inside}</form>`

for (const [what, html, controls] of [
  ['fields without quotes', form(), []],
  [
    'hidden fields, in any case and quotes',
    form(`<INPUT TYPE='hidden' NAME="t" VALUE='a "b" > c'>`),
    [['t', 'a "b" > c']],
  ],
  ['character references', form('<input name="a&amp;b" value="&lt;&#65;&#x42;&gt;">'), [['a&b', '<AB>']]],
  ['references of names and of Windows', form('<input name=x value="&eacute;&#128;&page=2">'), [['x', 'é€&page=2']]],
  [
    'what follows a script in a script',
    `<script><!-- <script></script> <form></script>${form('<input name=x>')}`,
    [['x', '']],
  ],
  ['what follows a text of a drawing', `<svg><![CDATA[ > <form> ]]></svg>${form('<input name=x>')}`, [['x', '']]],
  ['what follows a comment that browsers end earlier', form('<!-- --!><input name=x> -->'), [['x', '']]],
  [
    'boxes that are checked',
    form('<input type=checkbox name=a checked><input type=radio name=b value=1>'),
    [['a', 'on']],
  ],
  [
    'the option that is selected',
    form('<select name=l><option value=a><option value=b selected><option value=c></select>'),
    [['l', 'b']],
  ],
  ['the first option', form('<select name=l><option value=a>A</option><option value=b>B</select>'), [['l', 'a']]],
  [
    'the first button only',
    form('<button name=go value=1>Go</button><input type=submit name=no value=2>'),
    [['go', '1']],
  ],
  [
    'no fields that are disabled, or send nothing',
    form('<input name=x disabled><input type=reset name=y><button type=button name=z>'),
    [],
  ],
  ['no fields after the form', `${form()}<input name=x>`, []],
  ['a form that the page does not end', `<form method=post>${inputs}<input name=x>`, [['x', '']]],
  ['a field that a script writes', `<script>"<form>"; /* <input> */</script>${form()}`, []],
  ['a form in a comment, and a doctype', `<!doctype html><!-- <form method=post> -->${form()}`, []],
  ['the first of equal attributes', form('<input name=x name=y value=1 value=2>'), [['x', '1']]],
  ['a form beside a search', `<form><input name=u><input name=p></form>${form()}`, []],
] as const)
  test(`A form has what a browser would send: ${what}`, () => {
    const found = findForm(html, names)

    const others =
      found !== undefined && 'controls' in found ? found.controls.filter(([name]) => !names.includes(name)) : found
    assert.deepEqual(others, controls)
  })

test('The address is that of the form, with its references decoded', () => {
  const found = findForm(form('', 'action=" /login?a=1&page=2&amp;lang=en "'), names)

  assert.equal(found && 'action' in found && found.action, '/login?a=1&page=2&lang=en')
})

for (const [what, html] of [
  ['another method', `<form>${inputs}</form>`],
  ['a field is missing', `<form method=post><input name=u></form>`],
  ['the field is outside', `<form method=post><input name=u></form><input name=p>`],
  ['the page ends in a tag', `<form method=post><input name=u><input name="p`],
  ['a script', `<script>${form()}</script>`],
  ['a text area', `<textarea>${form()}</textarea>`],
  ['a comment', `<!-- ${form()}`],
  ['what a browser with scripts skips', `<noscript>${form()}</noscript>`],
  ['plain text', `<plaintext>${form()}`],
  ['no markup', 'a < b & c'],
] as const)
  test(`A page has no form with the fields: ${what}`, () => assert.equal(findForm(html, names), undefined))

for (const [what, html, unclear] of [
  ['two forms have the fields', form() + form(), 'several forms have the fields'],
  ['a field is there twice', form('<input name=p>'), 'the form has a field twice'],
  ['a form is in a form', `<form method=post>${form()}`, 'a form is in another form'],
  ['a field of the form is elsewhere', `${form()}<input form=x name=t>`, 'a field names its form'],
  ['the page has a base', `<base href="https://other.example/">${form()}`, 'the page has another base address'],
  ['the form is sent in parts', form('', 'enctype=multipart/form-data'), 'the form has another enctype'],
  ['the form has a file', form('<input type=file name=f>'), 'the form has a file'],
  ['the form has a text area', form('<textarea name=t></textarea>'), 'the form has a text area'],
  ['the button has an address', form('<button formaction=/elsewhere>'), 'the button sends another form'],
  ['an option has only a text', form('<select name=l><option>A</select>'), 'an option has no value'],
  ['fields are disabled', `<fieldset disabled>${form()}</fieldset>`, 'fields of the page are disabled'],
  ['a template', `${form()}<template><form></template>`, 'the page has a template'],
  ['drawings in drawings', form() + '<svg>'.repeat(1001), 'the page has too many drawings'],
] as const)
  test(`A form that is not understood is not sent: ${what}`, () => assert.deepEqual(findForm(html, names), { unclear }))

test('A page of an attacker is read in linear time', () => {
  for (const text of [
    '<a',
    '<a "',
    '<a b=',
    '<!--',
    '<script><!--',
    '<form method=post>',
    '<a b="',
    '&',
    '<input value="&#',
    '< ',
    '<a =',
    '<svg>',
    '<svg><title>',
  ])
    for (const closing of ['', '">', '-->', '</script>']) {
      const began = process.cpuUsage()
      findForm(text.repeat(Math.floor((256 * 1024) / text.length)) + closing, names)
      const { user } = process.cpuUsage(began)
      assert.ok(user < 1_500_000, `${text}…${closing} took ${user} µs`)
    }
})

test('Any text is read without an error', () => {
  const parts = [
    '<',
    '>',
    '/',
    '"',
    "'",
    '=',
    ' ',
    '&',
    ';',
    '#',
    '!--',
    '-->',
    'form',
    'input',
    'select',
    'option',
    'script',
    'name',
    'value',
    'method=post',
    'u',
    'p',
    'İ',
    '\0',
  ]
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...parts), { maxLength: 60 }), (texts) => {
      const found = findForm(texts.join(''), names)
      if (found !== undefined && 'controls' in found)
        assert.deepEqual(
          names.map((name) => found.controls.filter(([each]) => each === name).length),
          [1, 1],
        )
    }),
  )
})
