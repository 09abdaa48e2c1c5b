import { type CSSVariablesResolver, createTheme } from '@mantine/core';

// System fonts avoid requests to other hosts. Blue 8 is the lightest blue with readable white text (contrast 5.0 : 1).
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
    // Popups stay inside the landmark of their button.
    Menu: { defaultProps: { withinPortal: false, withInitialFocusPlaceholder: false } },
    Combobox: { defaultProps: { withinPortal: false } },
    // The page must have one banner, so the header of a dialog has no role.
    Modal: { defaultProps: { attributes: { header: { role: 'none' } } } },
  },
});

/** Replaces colours of the library whose contrast is below 4.5 : 1. */
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
