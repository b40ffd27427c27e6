import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findForm } from '../../src/application-sign-in/html-form.ts'

const names = ['u', 'p']
const inputs = '<input name=u><input type=password name=p>'
const form = (inside: string, attributes = '') => `<form method=post ${attributes}>${inputs}${inside}</form>`

const list = 'a list has other elements than options'
const lines = 'a field has several lines'
const changed = 'a browser changes the value of a field'
const drawing = 'a field is in a drawing'
const loose = 'a field follows a form with open elements'

// Chromium 156 sends another form for each of these pages than the tags alone say.
for (const [what, html, unclear] of [
  ['a list ends at a field', form('<select name=l><option value=1><input name=x></select>'), list],
  ['a list ends at another one', form('<select name=l><option value=1><select name=m><option value=2></select>'), list],
  ['a button opens a list', form('<select name=l><button name=b>B</button><option value=a></select>'), list],
  ['the first option is disabled', form('<select name=l><option value="" disabled><option value=b></select>'), list],
  ['options are disabled', form('<select name=l><optgroup disabled><option value=a></optgroup></select>'), list],
  ['a list ends with the form', form('<select name=l><option value=1>'), 'a list has no end'],
  ['a list ends with the page', form('<select name=l><option value=1>').replace('</form>', ''), 'a list has no end'],
  [
    'the last selected option counts',
    form('<select name=l><option value=a selected><option value=b selected></select>'),
    'several options are selected',
  ],
  [
    'a list with several choices',
    form('<select name=l multiple><option value=a></select>'),
    'a list has several lines',
  ],
  ['a list with several lines', form('<select name=l size=4><option value=a></select>'), 'a list has several lines'],
  [
    'the last choice counts',
    form('<input type=radio name=r value=1 checked><input type=radio name=r value=2 checked>'),
    'several choices are made',
  ],
  ['a field for the charset', form('<input type=hidden name=_charset_>'), 'a browser fills in a field'],
  ['a field for the direction', form('<input name=x dirname=d>'), 'a browser fills in a field'],
  ['lines in a field', form('<input name=x value="a\nb">'), lines],
  ['lines in a hidden field', form('<input type=hidden name=x value="a&#13;b">'), lines],
  ['lines in a name', form('<input type=hidden name="x\ny">'), lines],
  ['spaces around an address', form('<input type=email name=x value=" a ">'), changed],
  ['letters in a field for a number', form('<input type=number name=x value=abc>'), changed],
  ['a color without a value', form('<input type=color name=x>'), changed],
  ['a range without a value', form('<input type=range name=x>'), changed],
  ['the first button is an image', form('<input type=image name=i><button name=go>'), 'the first button is an image'],
  [
    'the first button is a command',
    form('<button commandfor=x command=close name=a>'),
    'the button sends another form',
  ],
  ['a field in a drawing', form('<svg><input name=x></svg>'), drawing],
  ['a field in a formula', form('<math><input name=x></math>'), drawing],
  [
    'a field in a drawing that is not closed',
    form('<svg><foreignObject></svg></foreignObject><input name=x>'),
    drawing,
  ],
  ['a form in a drawing', `<svg>${form('')}`, drawing],
  ['a page of frames', `<frameset>${form('')}`, 'the page has frames'],
  ['another encoding', form('', 'accept-charset=iso-8859-1'), 'the form has another accept-charset'],
  ['a field in an element of the form', `<form method=post><div>${inputs}</form><input name=x></div>`, loose],
  ['a field in a form with crossed tags', form('<span><p></span>') + '<input name=x>', loose],
] as const)
  test(`A form is never sent where a browser sends another one: ${what}`, () =>
    assert.deepEqual(findForm(html, names), { unclear }))

for (const [what, html, controls] of [
  ['buttons of any type', form('<button type=x name=a value=1>'), [['a', '1']]],
  ['buttons without a type', form('<button type="" name=a value=1>'), [['a', '1']]],
  [
    'one of several choices',
    form('<input type=radio name=r value=1 checked><input type=radio name=r value=2>'),
    [['r', '1']],
  ],
  ['groups of options', form('<select name=l size=1><optgroup><option value=a></optgroup></select>'), [['l', 'a']]],
  ['drawings', `<svg><g><path/></g></svg>${form('<svg/>')}<svg><title>x</title></svg>`, []],
  ['fields after a form that is closed', form('<ul><li>a<li>b</ul><p>c') + '<input name=x>', []],
] as const)
  test(`A form is sent like a browser sends it: ${what}`, () => {
    const found = findForm(html, names)
    assert.ok(found !== undefined && 'controls' in found, JSON.stringify(found))
    assert.deepEqual(found.controls.slice(2), controls)
  })
