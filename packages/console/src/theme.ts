import { type CSSVariablesResolver, createTheme } from '@mantine/core';

// System fonts: no request leaves for another host. Blue 8 is the lightest that white text can be read on (5.0 : 1).
export const theme = createTheme({
  primaryColor: 'blue',
  primaryShade: 8,
  autoContrast: true,
  defaultRadius: 'sm',
  respectReducedMotion: true,
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace',
  headings: { fontWeight: '650' },
  cursorType: 'pointer',
  components: {
    // What opens stays inside the landmark that it belongs to.
    Menu: { defaultProps: { withinPortal: false, withInitialFocusPlaceholder: false } },
    Combobox: { defaultProps: { withinPortal: false } },
    // The header of a dialog is none of the page's: there is one banner.
    Modal: { defaultProps: { attributes: { header: { role: 'none' } } } },
  },
});

/** Texts that the library's own colours leave below 4.5 : 1. */
export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': '#5c636a',
    '--mantine-color-placeholder': '#6c737a',
    '--mantine-color-error': 'var(--mantine-color-red-9)',
    '--mantine-color-anchor': 'var(--mantine-color-blue-8)',
    '--mantine-color-yellow-light-color': '#7a4300',
    '--mantine-color-blue-light-color': '#124f88',
    '--mantine-color-green-light-color': '#1d6b2e',
    '--mantine-color-orange-light-color': '#8f3306',
  },
  dark: {
    '--mantine-color-dimmed': '#adb0b5',
    '--mantine-color-placeholder': '#a0a3a8',
    '--mantine-color-error': 'var(--mantine-color-red-4)',
    '--mantine-color-anchor': 'var(--mantine-color-blue-4)',
  },
});
