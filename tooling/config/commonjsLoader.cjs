'use strict'
// Loads the ES modules of this package in module systems whose `require` cannot, such as Jest's. The package then
// exists there in this form alone, so its state exists once. All code is evaluated in the caller's realm. The build
// converts each file once to check that the result is CommonJS.
const { readFileSync } = require('node:fs')
const { Module } = require('node:module')
const { dirname, join } = require('node:path')
const { pathToFileURL } = require('node:url')

const loaded = new Map()

/** Returns the exports of a module of this package. @param error - why `require` did not load it */
module.exports = (requirer, name, error) => {
  // If Node.js runs with `require` of ES modules turned off, the program can still import them. Loading them here would
  // then create a second copy of all state.
  const isRefused = error?.name === 'SyntaxError' || error?.code === 'ERR_REQUIRE_ESM'
  if (!isRefused || requirer instanceof Module) throw error
  const { filename, require: requireOther } = requirer
  const load = (file) => {
    const known = loaded.get(file)
    if (known !== undefined) return known
    const exported = Object.defineProperty({}, '__esModule', { value: true })
    loaded.set(file, exported)
    const find = (specifier) => (specifier[0] === '.' ? load(join(dirname(file), specifier)) : requireOther(specifier))
    // biome-ignore lint/security/noGlobalEval: a module system of its own, for this package's own files
    const run = globalThis.eval(`${convert(readFileSync(file, 'utf8'))}\n//# sourceURL=${file}`)
    try {
      run(exported, define, find, pathToFileURL(file).href, file)
    } catch (failure) {
      loaded.delete(file) // like `require`: the next attempt must throw the same error, not return half a module
      throw failure
    }
    return exported
  }
  return load(join(dirname(filename), name))
}

function define(exported, getters) {
  for (const name of Object.keys(getters)) {
    if (!Object.hasOwn(exported, name)) Object.defineProperty(exported, name, { enumerable: true, get: getters[name] })
  }
}

/**
 * Converts a bundle of this package to the text of a function. Each import and export of a bundle has its own line, and
 * imports come first, as in an ES module.
 */
function convert(code) {
  const [getters, imports] = [[], []]
  const parts = (list) => list.split(',').flatMap((each) => (each.trim() === '' ? [] : [each.trim().split(' as ')]))
  const take = (pattern, statement) => {
    code = code.replace(pattern, (_, ...groups) => {
      imports.push(statement(...groups))
      return ''
    })
  }
  code = code.replace(/^export ?\{([^}]*)\};?$/gm, (_, list) => {
    for (const [local, name = local] of parts(list)) getters.push(`${name}:()=>${local}`)
    return ''
  })
  take(/^import ?\{([^}]*)\} ?from ?"([^"]*)";?$/gm, (list, from) => {
    const names = parts(list).map((each) => each.join(':'))
    return `const{${names.join()}}=$require("${from}");`
  })
  take(/^import ?\* ?as ([\w$]+) ?from ?"([^"]*)";?$/gm, (name, from) => `const ${name}=$require("${from}");`)
  take(/^import ?"([^"]*)";?$/gm, (from) => `$require("${from}");`)
  take(/^export ?\{([^}]*)\} ?from ?"([^"]*)";?$/gm, (list, from) => {
    const given = parts(list).map(([local, name = local]) => `${name}:()=>$from.${local}`)
    return `{const $from=$require("${from}");$define($exports,{${given.join()}})}`
  })
  take(/^export ?\* ?from ?"([^"]*)";?$/gm, (from) => {
    const given = 'Object.fromEntries(Object.keys($from).map(($name)=>[$name,()=>$from[$name]]))'
    return `{const $from=$require("${from}");$define($exports,${given})}`
  })
  const body = code
    .replaceAll(/(?<![.\w$])import\(([`"][^`"]*[`"])\)/g, 'Promise.resolve().then(()=>$require($1))')
    .replaceAll('import.meta.url', '$url')
  const head = `"use strict";$define($exports,{${getters.join()}});${imports.join('')}`
  return `(function($exports,$define,$require,$url,__filename){${head}${body}\n})`
}

module.exports.convert = convert
