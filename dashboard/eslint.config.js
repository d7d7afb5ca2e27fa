import svelte from 'eslint-plugin-svelte';
import tseslint from 'typescript-eslint';
import svelteConfig from './svelte.config.js';

export default tseslint.config(
  { ignores: ['dist/', 'node_modules/', 'src/api/schema.d.ts', 'test-results/', 'playwright-report/'] },
  ...tseslint.configs.strictTypeChecked,
  ...svelte.configs.recommended,
  {
    languageOptions: {
      parserOptions: {
        projectService: { allowDefaultProject: ['*.js', 'scripts/*.mjs'] },
        tsconfigRootDir: import.meta.dirname,
        extraFileExtensions: ['.svelte'],
      },
    },
    rules: {
      // Figures and texts are joined in sentences all the time.
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      'no-restricted-properties': [
        'error',
        { property: 'innerHTML', message: 'Texts of clients must not become markup.' },
        { property: 'outerHTML', message: 'Texts of clients must not become markup.' },
        { property: 'insertAdjacentHTML', message: 'Texts of clients must not become markup.' },
      ],
      'svelte/no-at-html-tags': 'error',
      'svelte/no-at-debug-tags': 'error',
      // The router makes addresses of the hash by itself.
      'svelte/no-navigation-without-resolve': 'off',
    },
  },
  {
    files: ['**/*.svelte', '**/*.svelte.ts'],
    languageOptions: { parserOptions: { parser: tseslint.parser, svelteConfig } },
  },
  {
    files: ['**/*.svelte'],
    rules: {
      // The linter does not know the types of what a component hands to functions and snippets in its markup;
      // svelte-check does, and looks at them.
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      // It narrows what markup and closures see later, when the value is another one.
      '@typescript-eslint/no-unnecessary-condition': 'off',
      // An effect names what it depends on with "void value".
      '@typescript-eslint/no-meaningless-void-operator': 'off',
      // Maps and sets that are replaced as a whole need no reactive class.
      'svelte/prefer-svelte-reactivity': 'off',
    },
  },
  {
    files: ['**/*.svelte.ts'],
    rules: {
      'svelte/prefer-svelte-reactivity': 'off',
      '@typescript-eslint/no-meaningless-void-operator': 'off',
    },
  },
  {
    // A page never imports another page; shared parts are in src/ui.
    files: ['src/ui/**', 'src/api/**', 'src/charts/**', 'src/format/**'],
    rules: { 'no-restricted-imports': ['error', { patterns: ['**/pages/**'] }] },
  },
  { files: ['**/*.js', '**/*.mjs'], ...tseslint.configs.disableTypeChecked },
);
