import sys  # plot_csv.py TABLE.csv FIGURE.png: every column against the first
import matplotlib.pyplot as plt
from numpy import genfromtxt
table = genfromtxt(sys.argv[1], delimiter=",", names=True)
[plt.plot(table[table.dtype.names[0]], table[n], label=n) for n in table.dtype.names[1:]]
plt.xlabel(table.dtype.names[0]), plt.legend(), plt.savefig(sys.argv[2])
