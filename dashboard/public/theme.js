// Sets the chosen theme before the first paint.
try {
  const theme = localStorage.getItem('thrum-theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // Without storage the theme is that of the system.
}
