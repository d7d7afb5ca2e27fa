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
    // A page never imports another page; shared parts are in src/ui.
    files: ['src/ui/**', 'src/api/**', 'src/charts/**', 'src/format/**'],
    rules: { 'no-restricted-imports': ['error', { patterns: ['**/pages/**'] }] },
  },
  { files: ['**/*.js', '**/*.mjs'], ...tseslint.configs.disableTypeChecked },
);
