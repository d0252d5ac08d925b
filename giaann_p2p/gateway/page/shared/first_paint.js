// Sets the chosen theme before anything is painted, so that the page does not flash in the other
// one. It is a plain script because modules run too late for that.
try {
  const theme = localStorage.getItem("giaann-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Without storage, the theme is the system's.
}
