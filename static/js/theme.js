// The browser's time zone, in which pages tell times to someone who has chosen no other.
document.cookie = `memos_zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}; path=/; max-age=31536000; samesite=lax`;

// Light or dark: the system's choice until the reader makes another, which this browser then keeps.
(() => {
  const KEY = "memos-theme";
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const wished = () => (system.matches ? "dark" : "light");
  const kept = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // storage is switched off: follow the system
    }
  };

  function keep(theme) {
    try {
      if (theme === wished()) localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, theme);
    } catch {
      return; // the choice holds for this page alone
    }
  }

  function show(theme) {
    root.dataset.bsTheme = theme;
    root.classList.toggle("dark-mode", theme === "dark"); // as the documentation of the API calls it
    document.getElementById("theme-toggle")?.setAttribute("aria-pressed", String(theme === "dark"));
  }

  show(kept() ?? wished());
  system.addEventListener("change", () => show(kept() ?? wished()));
  document.addEventListener("DOMContentLoaded", () => {
    const toggle = document.getElementById("theme-toggle");
    show(root.dataset.bsTheme);
    toggle.hidden = false;
    toggle.addEventListener("click", () => {
      const next = root.dataset.bsTheme === "dark" ? "light" : "dark";
      keep(next);
      show(next);
    });
  });
})();
