"""Colours of Okabe and Ito, distinguishable with any common colour vision, and greys."""

ORANGE, SKY, GREEN = "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
INK, FAINT, PALE = "#1f2933", "#5b6672", "#c9ced6"
