(* network.v - LIN, MLP, OPT: the linear layer, what a norm does to a bias, optimizers. *)

Require Import base batch_norm layer_norm merge family.

Definition matrix := nat -> nat -> R.
(* ∑ₙ ∑ⱼ Aₙⱼ·Bₙⱼ *)
Definition dot2 (N J : nat) (A B : matrix) : R := ∑ n < N, ∑ j < J, A n j * B n j.
(* x·W, row by row *)
Definition product (I : nat) (x W : matrix) : matrix := fun n j => ∑ i < I, x n i * W i j.

(* A product is linear in x and in W; the two sums that this leads to in a backward pass. *)
Lemma product_by_x N I J d W dy :
  dot2 N J (product I d W) dy = dot2 N I d (fun n i => ∑ j < J, dy n j * W i j).
Proof.
  apply Sum_ext; intros n. transitivity (∑ j < J, ∑ i < I, d n i * (dy n j * W i j)).
  - apply Sum_ext; intros j. unfold product. rewrite Rmult_comm, <- Sum_scal.
    apply Sum_ext; termwise.
  - rewrite Sum_swap. apply Sum_ext; intros i. apply Sum_scal.
Qed.
Lemma product_by_W N I J x D dy :
  dot2 N J (product I x D) dy = dot2 I J D (fun i j => ∑ n < N, x n i * dy n j).
Proof.
  transitivity (∑ n < N, ∑ i < I, ∑ j < J, D i j * (x n i * dy n j)).
  - apply Sum_ext; intros n. rewrite Sum_swap. apply Sum_ext; intros j. unfold product.
    rewrite Rmult_comm, <- Sum_scal. apply Sum_ext; termwise.
  - rewrite Sum_swap. apply Sum_ext; intros i. rewrite Sum_swap. apply Sum_ext; intros j.
    apply Sum_scal.
Qed.
Lemma along_product I px pW t x W dx dW : path2 px t x dx -> path2 pW t W dW ->
  path2 (fun s => product I (px s) (pW s)) t (product I x W)
        (fun n j => product I dx W n j + product I x dW n j).
Proof.
  intros [Ex Dx] [EW DW]. split; [rewrite Ex, EW; reflexivity |]. intros n j. unfold product.
  eapply d_eq; [apply d_Sum; intros i; apply d_mult; [apply Dx | apply DW] |].
  cbv beta. rewrite Ex, EW, <- Sum_plus. reflexivity.
Qed.
Lemma path2_const x t : path2 (fun _ => x) t x (fun _ _ => 0).
Proof. split; [reflexivity | intros; apply d_const]. Qed.
Lemma product_0_l I W n j : product I (fun _ _ => 0) W n j = 0.
Proof. unfold product. rewrite (Sum_ext _ _ (fun _ => 0)), Sum_0 by termwise. reflexivity. Qed.
Lemma product_0_r I x n j : product I x (fun _ _ => 0) n j = 0.
Proof. unfold product. rewrite (Sum_ext _ _ (fun _ => 0)), Sum_0 by termwise. reflexivity. Qed.
Lemma dot2_ext N J A B A' : (forall n j, A n j = A' n j) -> dot2 N J A B = dot2 N J A' B.
Proof. intros H. apply Sum_ext; intros n. apply Sum_ext; intros j. rewrite H. reflexivity. Qed.

(* ---- LIN --------------------------------------------------------------------------------- *)

Section Linear.
Variables (N I J : nat) (x W : matrix) (b : nat -> R) (L : matrix -> R) (dy : matrix).
(* LIN.1: yₙⱼ = bⱼ + ∑ᵢ xₙᵢ·Wᵢⱼ *)
Definition linear (x W : matrix) (b : nat -> R) : matrix := fun n j => b j + product I x W n j.
Hypothesis dL : gradient2 N J L (linear x W b) dy.

(* LIN.2: dxₙᵢ = ∑ⱼ dyₙⱼ·Wᵢⱼ *)
Theorem LIN_2 : gradient2 N I (fun x => L (linear x W b)) x (fun n i => ∑ j < J, dy n j * W i j).
Proof.
  intros p t d P. pose proof (along_product I p _ t x W d _ P (path2_const W t)) as [E D].
  eapply d_eq; [apply (dL _ t (product I d W)) | apply product_by_x].
  destruct P as [Ep _]. split; [rewrite Ep; reflexivity |]. intros n j. unfold linear.
  eapply d_eq; [apply d_plus; [apply d_const | apply D] |]. rewrite product_0_r. ring.
Qed.

(* LIN.3: dWᵢⱼ = ∑ₙ xₙᵢ·dyₙⱼ *)
Theorem LIN_3 : gradient2 I J (fun W => L (linear x W b)) W (fun i j => ∑ n < N, x n i * dy n j).
Proof.
  intros p t d P. pose proof (along_product I _ p t x W _ d (path2_const x t) P) as [E D].
  eapply d_eq; [apply (dL _ t (product I x d)) | apply product_by_W].
  destruct P as [Ep _]. split; [rewrite Ep; reflexivity |]. intros n j. unfold linear.
  eapply d_eq; [apply d_plus; [apply d_const | apply D] |]. rewrite product_0_l. ring.
Qed.

(* LIN.4: dbⱼ = ∑ₙ dyₙⱼ *)
Theorem LIN_4 : gradient J (fun b => L (linear x W b)) b (fun j => ∑ n < N, dy n j).
Proof.
  intros p t d [E D]. eapply d_eq; [apply (dL _ t (fun n j => d j)) |].
  - split; [rewrite E; reflexivity |]. intros n j. unfold linear. eapply d_eq; [rate | ring].
  - rewrite Sum_swap. apply Sum_ext; intros j. apply Sum_scal.
Qed.
End Linear.

(* LIN.5: cᵢⱼ ← (((cᵢⱼ + aᵢ₁·b₁ⱼ) + aᵢ₂·b₂ⱼ) + …) is the sum. The order is one of rounding only. *)
Fixpoint running_sum (c : R) (a b : nat -> R) (k : nat) : R :=
  match k with O => c | S m => running_sum c a b m + a m * b m end.
Theorem LIN_5 c a b k : running_sum c a b k = c + ∑ m < k, a m * b m.
Proof. induction k; simpl; [ring | rewrite IHk; ring]. Qed.

(* ---- MLP --------------------------------------------------------------------------------- *)

(* MLP.3: BN(x + b) = BN(x) for b constant in each channel *)
Theorem MLP_3 M ε x b i : (0 < M)%nat ->
  normalized M ε (fun j => x j + b) i = normalized M ε x i.
Proof.
  intros H. assert (m : mean M (fun j => x j + b) = mean M x + b).
  { rewrite (mean_lin2 M 1 b x (fun _ => 1)), mean_const by (exact H || termwise). ring. }
  unfold normalized, rstd, var. rewrite m.
  rewrite (Sum_ext M _ (fun j => (x j - mean M x) ^ 2)) by termwise. ring.
Qed.

(* MLP.4: LN(x + b) = LN(x + b − ⟨b⟩) *)
Theorem MLP_4 D ε x b i : (0 < D)%nat ->
  normalized D ε (fun j => x j + b j) i = normalized D ε (fun j => x j + b j - mean D b) i.
Proof.
  intros H. symmetry. apply (MLP_3 D ε (fun j => x j + b j) (- mean D b) i H).
Qed.

Lemma uniform_variance a : 0 < a -> is_RInt (fun u => u ^ 2 / (2 * a)) (- a) a (a ^ 2 / 3).
Proof.
  intros H. replace (a ^ 2 / 3) with (minus (a ^ 3 / (6 * a)) ((- a) ^ 3 / (6 * a))).
  - apply (is_RInt_derive (fun u => u ^ 3 / (6 * a))).
    + intros u _. auto_derive; [exact Logic.I | field; lra].
    + intros u _. apply (ex_derive_continuous (fun u => u ^ 2 / (2 * a))). auto_derive.
      exact Logic.I.
  - unfold minus, plus, opp; simpl. field. lra.
Qed.

(* MLP.6: W ~ U(−a, a), a = √(6/(in + out)) (Xavier, also called Glorot): the variance is
   2/(in + out). *)
Theorem MLP_6 inputs outputs : 0 < inputs -> 0 < outputs ->
  let a := sqrt (6 / (inputs + outputs)) in
  is_RInt (fun u => u ^ 2 / (2 * a)) (- a) a (2 / (inputs + outputs)).
Proof.
  intros A B a. assert (P : 0 < 6 / (inputs + outputs)) by (apply Rdiv_lt_0_compat; lra).
  replace (2 / (inputs + outputs)) with (a ^ 2 / 3).
  - apply uniform_variance, sqrt_lt_R0, P.
  - unfold a. rewrite <- Rsqr_pow2, Rsqr_sqrt by lra. field. lra.
Qed.

(* MLP.8: W, b ~ U(−a, a), a = 1/√in (fan-in: PyTorch's default): the variance is 1/(3·in). *)
Theorem MLP_8 inputs : 0 < inputs -> let a := 1 / sqrt inputs in
  is_RInt (fun u => u ^ 2 / (2 * a)) (- a) a (1 / (3 * inputs)).
Proof.
  intros A a. pose proof (sqrt_lt_R0 _ A) as S.
  replace (1 / (3 * inputs)) with (a ^ 2 / 3).
  - apply uniform_variance. apply Rdiv_lt_0_compat; lra.
  - unfold a. rewrite <- (sqrt_sqrt inputs) at 2 by lra. field. lra.
Qed.

(* MLP.9: L = ∑_w (N_w/N)·L_w, L_w the mean over the N_w examples of worker w, any split *)
Theorem MLP_9 N W owner l : (0 < N)%nat -> (forall i, (owner i < W)%nat) ->
  let N_of w := ∑ i < N, at_worker owner w (fun _ => 1) i in
  let L_of w := (∑ i < N, at_worker owner w l i) / N_of w in
  (forall w, (w < W)%nat -> N_of w <> 0) ->
  mean N l = ∑ w < W, N_of w / N * L_of w.
Proof.
  intros P H N_of L_of nonempty.
  rewrite (Sum_ext_lt W _ (fun w => 1 / N * ∑ i < N, at_worker owner w l i)).
  - rewrite Sum_scal, ST_5 by exact H. rewrite mean_is. change (Sum N l) with (∑ i < N, l i).
    field. apply count_ne0, P.
  - intros w I. pose proof (nonempty w I). pose proof (count_ne0 N P). unfold L_of. field. auto.
Qed.

(* ---- OPT --------------------------------------------------------------------------------- *)

(* OPT.1: a ← κ·a + g: every gradient counts, an older one less. *)
Fixpoint heavy_ball (κ : R) (g : nat -> R) (t : nat) : R :=
  match t with O => 0 | S s => κ * heavy_ball κ g s + g s end.
Theorem OPT_1 κ g t : heavy_ball κ g t = ∑ k < t, κ ^ (t - 1 - k) * g k.
Proof.
  induction t; [reflexivity |]. cbn [heavy_ball Sum]. rewrite IHt.
  replace (S t - 1 - t)%nat with O by lia. rewrite <- Sum_scal, pow_O.
  f_equal; [| ring].
  apply Sum_ext_lt; intros k K. replace (S t - 1 - k)%nat with (S (t - 1 - k)) by lia.
  cbv beta. rewrite <- tech_pow_Rmult. ring.
Qed.

(* OPT.2: θ ← θ − η·a: after t steps θ has gone η times the sum of the a. *)
Fixpoint descent (η θ : R) (a : nat -> R) (t : nat) : R :=
  match t with O => θ | S s => descent η θ a s - η * a s end.
Theorem OPT_2 η θ a t : descent η θ a t = θ - η * ∑ k < t, a k.
Proof. induction t; simpl; [ring | rewrite IHt; ring]. Qed.

(* OPT.3: a ← β₁·a + (1 − β₁)·g from 0: weights (1 − β₁)·β₁ᵏ, which sum to 1 − β₁ᵗ *)
Definition adam (β : R) (g : nat -> R) (t : nat) : R := running (fun _ => 1 - β) g 0 t.
Theorem OPT_3 β₁ g t : adam β₁ g (S t) = β₁ * adam β₁ g t + (1 - β₁) * g t /\
  adam β₁ g t = ∑ k < t, (1 - β₁) * β₁ ^ (t - 1 - k) * g k /\
  adam β₁ (fun _ => 1) t = 1 - β₁ ^ t.
Proof.
  unfold adam. split; [simpl; ring | split].
  - rewrite BN_8. replace (1 - (1 - β₁)) with β₁ by ring. ring.
  - induction t; simpl; [ring | rewrite IHt; ring].
Qed.

(* OPT.4: b ← β₂·b + (1 − β₂)·g²: never negative *)
Theorem OPT_4 β₂ g t : 0 <= β₂ <= 1 ->
  adam β₂ (fun k => g k ^ 2) (S t) = β₂ * adam β₂ (fun k => g k ^ 2) t + (1 - β₂) * g t ^ 2 /\
  0 <= adam β₂ (fun k => g k ^ 2) t.
Proof.
  intros H. unfold adam. split; [simpl; ring |].
  induction t; cbn [running]; [lra |].
  apply Rplus_le_le_0_compat; apply Rmult_le_pos; try exact IHt; try apply pow2_ge_0; lra.
Qed.

(* OPT.5: θ ← θ − η·(a/(1 − β₁ᵗ))/(√(b/(1 − β₂ᵗ)) + ε): if all gradients are g, dividing by
   1 − βᵗ gives g and g², and the step is η·g/(|g| + ε). *)
Theorem OPT_5 β₁ β₂ η ε θ g t : 0 < β₁ < 1 -> 0 < β₂ < 1 -> 0 < ε -> (0 < t)%nat ->
  let a := adam β₁ (fun _ => g) t in
  let b := adam β₂ (fun _ => g ^ 2) t in
  θ - η * (a / (1 - β₁ ^ t)) / (sqrt (b / (1 - β₂ ^ t)) + ε) = θ - η * g / (Rabs g + ε).
Proof.
  intros A B E T a b. assert (S : forall β c, adam β (fun _ => c) t = c * (1 - β ^ t)).
  { intros β c. destruct (OPT_3 β (fun _ => 1) t) as (_ & _ & U). rewrite <- U. unfold adam.
    clear. induction t; simpl; [ring | rewrite IHt; ring]. }
  assert (P : forall β, 0 < β < 1 -> β ^ t < 1).
  { intros β Q. apply pow_lt_1_compat; [lra | exact T]. }
  pose proof (P β₁ A). pose proof (P β₂ B). unfold a, b. rewrite !S.
  replace (g * (1 - β₁ ^ t) / (1 - β₁ ^ t)) with g by (field; lra).
  replace (g ^ 2 * (1 - β₂ ^ t) / (1 - β₂ ^ t)) with (Rsqr g) by (unfold Rsqr; field; lra).
  rewrite sqrt_Rsqr_abs. reflexivity.
Qed.
